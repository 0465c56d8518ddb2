"""
The words of a report in English and Chinese, and how values are put into them. No page is made here.

The sentences about health are here in Chinese; ``quality.health`` has them in English.
A test checks that kinds, keys and placeholders are the same in both languages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter

from es_simhash.dashboards.chart_parts import ENGLISH as CHARTS_IN_ENGLISH, ChartWords
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.quality.health import SENTENCES, FindingKind
from es_simhash.tables.notebook import Child, Html, join, user_text

_SHARE = "抽查的 {whole} 篇文档中，有 {part} 篇"
_HOT = "{field} 的值 {term} 出现在 {documents} 篇文档中；随机情况下约为 {chance} 篇"

_COOLER = (
    "这些文本有很多相同内容，例如模板文字或副本，查询与其相近的文本时会读取更多文档："
    "请去掉模板文字（es-simhash boilerplate），或对副本分组。"
)

_LEARN = (
    "如果这是模板而不是正文，请不计入这段文字：es-simhash boilerplate {index} --out mask.json，"
    "再以另一个前缀补写指纹（backfill --boilerplate mask.json）。"
)

CHINESE: Mapping[FindingKind, tuple[str, str]] = {
    # A report about such an index ends in an error, so only doctor shows what its mapping lacks.
    "not_ready": ("索引 {index} 不能使用：{fault}", "{advice}"),
    "no_source": (
        "索引 {index} 不保存 _source，因此无法更新文档。",
        "请通过 ingest 或 with_fingerprints 发送完整的文档。",
    ),
    "partial_source": (
        "索引 {index} 的 _source 缺少一些字段（{left_out}），更新文档会使这些字段无法再被搜索到。",
        "请通过 ingest 或 with_fingerprints 发送完整的文档，或新建保存完整 _source 的索引。",
    ),
    "text_field_unknown": (
        "映射没有记录文本字段，因此没有检查文本。",
        "请记录文本字段：put_mapping，或 es-simhash create --existing --yes --text-field。",
    ),
    "unreadable_texts": (
        f"{_SHARE}有指纹，但无法读取文本，例如 {{example}}。",
        "无法比较这些文档的文本：请在 _source 中保存文本，并允许当前用户读取。",
    ),
    "broken": (
        f"{_SHARE}的指纹不是 16 位小写十六进制数字，或分块词项与指纹不符，例如 {{example}}。",
        "请只用本库写入这些字段，并为这些文档重新补写指纹（backfill）。",
    ),
    "rounded": (
        f"{_SHARE}的 {{field}} 与指纹不符，例如 {{example}}。",
        "把数字读作双精度浮点数的程序（例如 JavaScript）舍入了它们：请对索引运行 backfill。",
    ),
    "numbers": (
        f"{_SHARE}以数字保存 {{field}}。JavaScript 等把数字读作双精度浮点数的程序会将其舍入，因此查询不使用脚本。",
        "请对索引运行 backfill：它会写入十进制字符串。",
    ),
    "stale": (
        f"{_SHARE}的指纹属于另一段文本，例如 {{example}}。",
        "文本更新时没有更新指纹字段，或当前用户只能看到部分文本：请运行 backfill，并通过 with_fingerprints 发送更新。",
    ),
    "lost_canonicals": (
        "有 {documents} 篇文档（{groups} 个分组）指向的代表文档不存在；排除重复文档的搜索会漏掉它们。",
        "请对一起分组的所有索引运行 reconcile。",
    ),
    "short": (
        f"{_SHARE}的文本片段（shingle）少于 {{least}} 个，例如 {{example}}。",
        "改动一个词就会改变指纹的许多位：查询时请使用预设或文本验证。",
    ),
    "two_scripts": (
        "抽查的文本中，繁体 {traditional} 篇，简体 {simplified} 篇；其中 {pairs} 对是同一文本的繁简两种写法。",
        "繁体与简体文本不会被识别为近似重复：请以另一个前缀，用带有预处理步骤 t2s 的方案补写指纹（backfill）。",
    ),
    "missing": ("没有指纹的文档：{missing} 篇。", "请对索引运行 backfill。"),
    "missing_of_sample": (
        f"没有指纹的文档：{{missing}} 篇；{_SHARE}应该有指纹。",
        "请对索引运行 backfill。",
    ),
    "featureless": (
        "没有指纹的文档：{missing} 篇；抽查的 {whole} 篇没有任何特征。",
        "无需处理：这样的文本不会与任何文本匹配。",
    ),
    "hot": (f"{_HOT}。", _COOLER),
    "hot_template": (
        "{field} 的值为 {term} 的文档中，有 {whole} 篇内容不同，其中 {part} 篇都含有这段文字：{text}",
        _LEARN,
    ),
    "group_template": (
        "组 {group} 有 {documents} 篇文档，但 {whole} 篇内容不同的文档中，{part} 篇都含有这段文字：{text}",
        _LEARN,
    ),
    "hot_copies": (f"{_HOT}；其中 {{copies}} 篇文档的指纹相同。", _COOLER),
}
"""What was found, and what to do, by kind."""

_ENGLISH = {
    "title": "Near-duplicates in {index}",
    "made": "Report of {at} by es_simhash {version}",
    "skip": "To the groups",
    "sentence": "{share} of the {documents} documents are near-duplicates of another document.",
    "sentence_lost": "{share} of the {documents} documents are marked as near-duplicates of another document, but "
    "{number} documents of the index name one that is not there: run es-simhash reconcile, and make the report again.",
    "sentence_none": "No document is a near-duplicate of another document.",
    "sentence_empty": "The index has no documents.",
    "sentence_ungrouped": "No document is grouped yet: run es-simhash reconcile, and make the report again.",
    "filtered": "Only the documents that match this filter were counted: {filter}",
    "documents": "documents",
    "duplicates": "duplicates",
    "share": "share",
    "groups": "groups of two or more",
    "largest": "documents in the largest group",
    "without": "without fingerprint",
    "ungrouped": "not grouped yet",
    "meaning": "Two documents are near-duplicates when their fingerprints differ in few of 64 bits, and their texts "
    "are similar where the grouping compares texts. Near-duplicates that belong together are a group. One of them, the "
    "canonical, stands for the group; the others are its duplicates.",
    "numbers": "In numbers",
    "over_time": "Over time",
    "by_source": "By source",
    "sizes": "Groups by size",
    "distances": "Duplicates by distance",
    "data": "The numbers of this chart",
    "from": "from (UTC)",
    "source": "source",
    "size": "documents in the group",
    "number_of_groups": "groups",
    "distance": "distance in bits",
    "no_value": "(none)",
    "other_sources": "({number} other sources)",
    "earlier": "(earlier)",
    "later": "(later)",
    "span": "From {first} to {last}; {interval}.",
    "minute": "each bar is a minute",
    "hour": "each bar is an hour",
    "day": "each bar is a day",
    "week": "each bar is a week",
    "month": "each bar is a month",
    "quarter": "each bar is a quarter",
    "year": "each bar is a year",
    "outside": "Not in the chart: {earlier} earlier, {later} later, and {without} documents without a date.",
    "other_sources_note": "Shown are the {shown} sources with most duplicates, of {number}.",
    "shown_groups": "The largest and the strangest groups",
    "no_groups": "There is no group of two or more documents.",
    "why_largest": "one of the largest groups",
    "why_farthest": "a member with one of the largest distances: {number} bits",
    "why_sources": "of {number} sources",
    "why_span": "over {number} days",
    "strange_note": "Groups of many sources and over a long time were looked for among the {number} largest groups.",
    "group": "Group {id}: {documents} documents",
    "canonical": "canonical",
    "canonical_missing": "The canonical of this group could not be read.",
    "no_text": "no text could be read",
    "cut": "The text has {length} characters; its beginning is shown.",
    "bits": "{number} bits",
    "similar": "{share} similar",
    "not_compared": "text not compared",
    "same_words": "The same words.",
    "legend_goes": "words only in this document",
    "legend_stays": "words only in the canonical",
    "more_places": "and {number} more places",
    "beginnings": "only the beginnings of the texts were compared here",
    "more_members": "and {number} more documents",
    "presets": "What the presets would remove",
    "presets_note": "Estimated from {sampled} documents that were drawn at random, with 95 % confidence intervals; the "
    "seed is {seed}. If one document stays for each group, so many would go. A preset compares the texts of documents "
    "whose fingerprints are near. The last column says how often it would be right without that.",
    "presets_none": "The presets were not measured: they are for scheme {scheme}, or no text could be read.",
    "preset": "preset",
    "preset_identical": "identical: the same words",
    "preset_near": "near: a few words changed",
    "preset_similar": "similar: edited, cut or with something added",
    "preset_noisy": "noisy: wrong letters, as in scans and transcripts",
    "limits": "bits, similarity",
    "removed": "documents that would go",
    "removed_number": "about",
    "precision": "right by bits alone",
    "of_pairs": "of {number} pairs",
    "health": "Health of the fingerprints",
    "healthy": "No fault was found in {sampled} documents that were drawn at random.",
    "unhealthy": "Examined were {sampled} documents that were drawn at random.",
    "health_of_all": "This part is about all fingerprints, also of documents that do not match the filter.",
    "severity": "severity",
    "error": "error",
    "warning": "warning",
    "note": "note",
    "found": "found",
    "advice": "what to do",
    "incomplete": "Some documents could not be read: {reason}",
    "several_canonicals": "Groups with several canonicals: {number}. Several indices have a document of the same id; "
    "their groups of that name count as one. Make a report about each index.",
    "measured": "How this was measured",
    "index": "index",
    "moment": "moment",
    "version": "version",
    "filter": "filter",
    "scheme": "scheme",
    "grouping": "grouping",
    "never_grouped": "never grouped",
    "rule": "rule {rule}; at most {bits} bits",
    "rule_texts": "texts at least {share} similar",
    "rule_texts_by": "texts at least {share} similar ({by})",
    "rule_no_texts": "texts not compared",
    "rule_order": "preferred as canonical: {order}",
    "rule_per": "only within one value of {field}",
    "rule_within": "only within {span} by {field}",
    "exact": "counted",
    "exact_words": "Numbers of documents, duplicates and groups: exact, over all documents. They come from several "
    "searches: documents that were written meanwhile are in some of them.",
    "sampled": "sampled",
    "sampled_words": "Presets: {presets} documents. Health: {health} documents. Seed {seed}.",
    "fields": "fields",
    "complete": "This page is complete in itself: it loads nothing and sends nothing.",
    "list_mark": "; ",
    "and": ", ",
}

_CHINESE = {
    "title": "{index} 中的近似重复文档",
    "made": "报告时间 {at}，由 es_simhash {version} 生成",
    "skip": "跳到分组",
    "sentence": "{documents} 篇文档中，有 {share} 与另一篇文档近似重复。",
    "sentence_lost": "{documents} 篇文档中，有 {share} 标记为与另一篇文档近似重复，"
    "但索引中有 {number} 篇指向的文档不存在：请运行 es-simhash reconcile，然后重新生成报告。",
    "sentence_none": "没有文档与另一篇文档近似重复。",
    "sentence_empty": "索引中没有文档。",
    "sentence_ungrouped": "文档尚未分组：请运行 es-simhash reconcile，然后重新生成报告。",
    "filtered": "只统计了符合此过滤条件的文档：{filter}",
    "documents": "文档",
    "duplicates": "重复文档",
    "share": "占比",
    "groups": "两篇及以上的分组",
    "largest": "最大分组的文档数",
    "without": "没有指纹",
    "ungrouped": "尚未分组",
    "meaning": "如果两篇文档的指纹在 64 位中只有少数几位不同，并且（在分组规则比较文本时）文本相似，"
    "它们就是近似重复文档。属于一起的近似重复文档构成一个分组。其中一篇代表该分组，称为代表文档；其余的是它的重复文档。",
    "numbers": "数字概览",
    "over_time": "按时间",
    "by_source": "按来源",
    "sizes": "分组大小",
    "distances": "重复文档的距离",
    "data": "图表数据",
    "from": "起始时间（UTC）",
    "source": "来源",
    "size": "分组中的文档数",
    "number_of_groups": "分组数",
    "distance": "距离（位）",
    "no_value": "（无）",
    "other_sources": "（其他 {number} 个来源）",
    "earlier": "（更早）",
    "later": "（更晚）",
    "span": "从 {first} 到 {last}，{interval}。",
    "minute": "每条为一分钟",
    "hour": "每条为一小时",
    "day": "每条为一天",
    "week": "每条为一周",
    "month": "每条为一个月",
    "quarter": "每条为一个季度",
    "year": "每条为一年",
    "outside": "图中未包含：更早的文档 {earlier} 篇，更晚的 {later} 篇，没有日期的 {without} 篇。",
    "other_sources_note": "共 {number} 个来源，图中显示重复文档最多的 {shown} 个。",
    "shown_groups": "最大的和最特别的分组",
    "no_groups": "没有两篇及以上的分组。",
    "why_largest": "最大的分组之一",
    "why_farthest": "有一篇距离很大的文档：{number} 位",
    "why_sources": "来自 {number} 个来源",
    "why_span": "时间跨度 {number} 天",
    "strange_note": "来源多和时间跨度长的分组，是在最大的 {number} 个分组中查找的。",
    "group": "分组 {id}：{documents} 篇文档",
    "canonical": "代表文档",
    "canonical_missing": "无法读取该分组的代表文档。",
    "no_text": "无法读取文本",
    "cut": "全文共 {length} 个字符，这里只显示开头。",
    "bits": "相差 {number} 位",
    "similar": "相似度 {share}",
    "not_compared": "未比较文本",
    "same_words": "词语相同。",
    "legend_goes": "仅在本文档中的词语",
    "legend_stays": "仅在代表文档中的词语",
    "more_places": "另有 {number} 处不同",
    "beginnings": "这里只比较了文本的开头",
    "more_members": "另有 {number} 篇文档",
    "presets": "各预设会删除多少文档",
    "presets_note": "根据随机抽取的 {sampled} 篇文档估计，附 95% 置信区间；随机种子为 {seed}。"
    "如果每个分组保留一篇文档，其余的会被删除。预设会比较指纹相近的文档的文本。最后一列表示不比较文本时判断正确的比例。",
    "presets_none": "没有测量预设：预设适用于方案 {scheme}，或者无法读取文本。",
    "preset": "预设",
    "preset_identical": "identical：词语相同",
    "preset_near": "near：改动了少数词语",
    "preset_similar": "similar：经过编辑、删节或增补",
    "preset_noisy": "noisy：含错字，如扫描件、听写稿",
    "limits": "位数，相似度",
    "removed": "会被删除的文档",
    "removed_number": "约",
    "precision": "只看指纹时的正确率",
    "of_pairs": "{number} 对文档",
    "health": "指纹的健康状况",
    "healthy": "随机抽查了 {sampled} 篇文档，没有发现问题。",
    "unhealthy": "随机抽查了 {sampled} 篇文档。",
    "health_of_all": "本节针对索引的全部指纹，包括不符合过滤条件的文档。",
    "severity": "严重程度",
    "error": "错误",
    "warning": "警告",
    "note": "提示",
    "found": "发现",
    "advice": "建议",
    "incomplete": "有些文档无法读取：{reason}",
    "several_canonicals": "有多篇代表文档的分组：{number} 个。多个索引中有 ID 相同的文档，同名的分组按一个分组计算。"
    "请分别为每个索引生成报告。",
    "measured": "测量方法",
    "index": "索引",
    "moment": "时间",
    "version": "版本",
    "filter": "过滤条件",
    "scheme": "方案",
    "grouping": "分组规则",
    "never_grouped": "从未分组",
    "rule": "规则 {rule}；最多相差 {bits} 位",
    "rule_texts": "文本相似度不低于 {share}",
    "rule_texts_by": "文本相似度不低于 {share}（{by}）",
    "rule_no_texts": "不比较文本",
    "rule_order": "优先作为代表文档：{order}",
    "rule_per": "仅限 {field} 的值相同",
    "rule_within": "仅限 {field} 相差不超过 {span}",
    "exact": "统计",
    "exact_words": "文档、重复文档和分组的数目对全部文档精确统计。"
    "它们来自多次搜索：其间写入的文档可能只计入其中一部分。",
    "sampled": "抽样",
    "sampled_words": "预设：{presets} 篇文档。健康状况：{health} 篇文档。随机种子 {seed}。",
    "fields": "字段",
    "complete": "本页自成一体：不加载任何内容，也不发送任何内容。",
    "list_mark": "；",
    "and": "，",
}


def _health(sentences: Mapping[FindingKind, tuple[str, str]]) -> dict[str, str]:
    found = {f"found_{kind}": message for kind, (message, _) in sentences.items()}
    return found | {f"advice_{kind}": advice for kind, (_, advice) in sentences.items()}


WORDS: Mapping[str, Mapping[str, str]] = {
    "en": _ENGLISH | _health({kind: (each.message, each.advice) for kind, each in SENTENCES.items()}),
    "zh": _CHINESE | _health(CHINESE),
}
"""The words of each language by key; what stands in braces is filled in."""

CHART_WORDS: Mapping[str, ChartWords] = {
    "en": CHARTS_IN_ENGLISH,
    "zh": ChartWords(
        duplicates="重复文档",
        others="其他文档",
        of=" / ",
        over_time="按时间统计的文档数，重复文档用另一种颜色表示。",
        by_source="各来源中重复文档的占比，重复文档最多的来源在最前。",
        by_size="分组大小：有多少个分组包含多少篇文档（含代表文档）。",
        by_distance="重复文档与代表文档的距离：64 位中不同的位数。",
        documents_in_group="分组中的文档数",
        groups="分组数",
        bits="与代表文档不同的位数",
    ),
}
"""The words of the charts of each language."""

LANGUAGES = tuple(WORDS)


@dataclass(frozen=True, slots=True)
class Speech:
    """The words of a report in one language, ``"en"`` or ``"zh"``; another one raises InvalidInputError."""

    language: str = "en"

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise InvalidInputError(f"language {shorten(self.language)} is not known: give {' or '.join(LANGUAGES)}")

    @property
    def charts(self) -> ChartWords:
        return CHART_WORDS[self.language]

    @property
    def locale(self) -> str:
        """How dates are written in the charts, by the names of d3."""
        return {"en": "en-US", "zh": "zh-CN"}[self.language]

    def __call__(self, key: str, **values: object) -> str:
        """Return the words *key*; numbers among the *values* are written with separators."""
        written = {name: f"{each:,}" if isinstance(each, int) else each for name, each in values.items()}
        return WORDS[self.language][key].format(**written)

    def html(self, key: str, **values: Child | float) -> Html:
        """Return the words *key* as markup; each value that is a text is a text of a user."""
        parts: list[Child] = []
        for literal, name, _, _ in Formatter().parse(WORDS[self.language][key]):
            parts.append(literal)
            if name is not None:
                value = values[name]
                if isinstance(value, (int, float)):
                    parts.append(f"{value:,}")
                else:
                    parts.append(value if isinstance(value, Html) else user_text(value))
        return join(*parts)

    def percent(self, share: float | None, digits: int = 1) -> str:
        """Return a share in percent, never rounded to 0 or to 100 where it is neither; empty for ``None``."""
        if share is None:
            return ""
        smallest = 10.0 ** -(digits + 2)
        text = f"{share:.{digits}%}"
        if 0 < share < smallest:
            text = f"< {smallest:.{digits}%}"
        elif 1 - smallest < share < 1:
            text = f"> {1 - smallest:.{digits}%}"
        return text if self.language == "zh" else text.replace("%", " %")
