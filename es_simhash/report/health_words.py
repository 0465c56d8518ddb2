"""
The sentences about the health of an index in Chinese, for each kind of finding: what was found, and what to do.

``quality.health_words`` has them in English. A test holds kinds and placeholders together.
"""

from __future__ import annotations

from collections.abc import Mapping

from es_simhash.quality.health_words import FindingKind

__all__ = ["CHINESE"]

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
        "请记录文本字段：put_mapping，或 es-simhash create --existing --text-field。",
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
