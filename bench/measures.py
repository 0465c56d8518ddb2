"""
What each preset is worth, in one table: known pairs, edited copies, forms of letters, and what differs in one sign.

    python bench/measures.py DATA_FOLDER [--copies 1500]

Prints Markdown, a row for each preset. "setup" is the preset that setup chooses for 500 texts of each set.

Of each set: recall / precision of known pairs at a Jaccard similarity of .8 / the precision that forgives down to .7;
of edited copies that share .8 of the truth's shingles (three words, five characters of Chinese) the share whose
original is reported; of 1,000 pairs, half of them near in bits and known to share less than half, half drawn at
random, how many are reported. Forms: 30 texts in each of 13 languages, and the same in other code points; "tones" are
Vietnamese texts and the same without marks. Signs: pairs that differ in one sign, number or Roman number, with
numbers "same".
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import numpy as np
from edited import KINDS, NUMBERS
from numpy.typing import NDArray
from quality import Truth, read_set, score, shingler

from es_simhash.groups.all_pairs import near_pairs
from es_simhash.hashing import DEFAULT_SCHEME, fingerprint_array, get_scheme
from es_simhash.quality.tune import measure
from es_simhash.texts.measures import PRESETS, Numbers, Preset, compare_pairs

SETS = {"reuters21578": 16, "xwlb_zh": 16, "laws_tw": 16, "weibo_ced": 12}
"""The sets, and the bits within which all pairs are compared: there are too many within 16 of posts."""

SHORTEST, LONGEST, WRONG = 60, 20_000, 1_000
KNOWN_WRONG = 0.5
WORDS, TEXTS = 60, 30

Pair = tuple[str, str]


def _replaced(*pairs: tuple[str, str]) -> Callable[[str], str]:
    def change(text: str) -> str:
        for old, new in pairs:
            text = text.replace(old, new)
        return text

    return change


def without_marks(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


LANGUAGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "Romanian": (
        """
        președintele țara și știri oraș națiune ședință viață pește împreună câștig după înțeles școală
        stație așteaptă muncește acțiune poliție ministru guvern lege piață preț creștere scădere vineri
        dimineață ploaie drum țăran
        """,
        _replaced(("ș", "ş"), ("ț", "ţ"), ("Ș", "Ş"), ("Ț", "Ţ")),
    ),
    "Russian": (
        """
        ёлка зелёная ещё идёт полёт самолёт учёный надёжный лёд тёмный вечер город река мост поезд утро
        новость берёт чёрный ребёнок жёлтый счёт приём объём тёплый весёлый дёшево серьёзно министр закон
        рынок цена
        """,
        _replaced(("ё", "е")),
    ),
    "Greek": (
        """
        λιμάνι άνοιξε Δευτέρα πρωί κυβέρνηση νόμος τιμή αγορά πόλη γέφυρα ποτάμι τρένο σχολείο παιδιά
        γιατρός υπουργός βουλή εκλογές ψήφος ειρήνη πόλεμος θάλασσα νησί ήλιος βροχή δρόμος σπίτι βιβλίο
        εφημερίδα γράμμα
        """,
        lambda text: without_marks(text).upper(),
    ),
    "French": (
        """
        œuvre cœur sœur bœuf manœuvre vœu nœud œil chœur mœurs ministre loi marché prix ville pont rivière
        train école enfants médecin élection paix guerre mer île soleil pluie route maison livre journal
        lettre
        """,
        _replaced(("œ", "oe"), ("Œ", "OE")),
    ),
    "Danish": (
        """
        blåbær grød på Ærø år gås måned ørken øl sø færge bæk næste læge træ skæg bjørn fløde brød køkken
        måske åben regering lov marked pris by bro flod tog skole børn valg fred krig hav sol regn vej hus
        bog avis brev
        """,
        _replaced(("å", "aa"), ("æ", "ae"), ("ø", "oe"), ("Æ", "Ae")),
    ),
    "German": (
        """
        Türen öffnen früh Äpfel Maße Straße Größe schön Bücher Häuser Brücke Fluß Züge Schüler Ärzte Gesetz
        Märkte Preis Wähler Frieden Krieg Meer Insel Sonne Regen Weg Zeitung Brief Regierung Gespräch müssen
        können
        """,
        _replaced(("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss"), ("Ä", "Ae"), ("Ö", "Oe"), ("Ü", "Ue")),
    ),
    "Turkish": (
        """
        liman ofisi pazartesi açılıyor kapısı şehir köprü ırmak tren sabah çocuk okul hükümet yasa piyasa
        fiyat seçim barış savaş deniz ada güneş yağmur yol ev kitap gazete mektup bakan ışık kırmızı sarı
        mavi iğne
        """,
        lambda text: text.replace("i", "İ").upper(),
    ),
    "Arabic": (
        """
        إلى المدرسة أحمد آذار مستشفى الحكومة القانون السوق السعر المدينة الجسر النهر القطار الصباح الأطفال
        الطبيب الوزير الانتخابات السلام الحرب البحر الجزيرة الشمس المطر الطريق البيت الكتاب الجريدة الرسالة
        على أكبر إنتاج
        """,
        _replaced(("أ", "ا"), ("إ", "ا"), ("آ", "ا"), ("ى", "ي"), ("ة", "ه")),
    ),
    "Persian": (
        """
        این کتاب یک مدرسه کشور تاریخ شهر پل رودخانه قطار صبح کودکان پزشک وزیر دولت قانون بازار قیمت انتخابات
        صلح جنگ دریا جزیره خورشید باران راه خانه روزنامه نامه کوچک بزرگی زندگی
        """,
        _replaced(("ی", "ي"), ("ک", "ك")),
    ),
    "Thai": (
        """
        แม่น้ำ แห่ง น้ำตก ทำงาน คำถาม จำนวน กำลัง แดง แมว แกง แผ่นดิน สะพาน รถไฟ โรงเรียน เด็ก แพทย์ รัฐบาล
        กฎหมาย ตลาด ราคา เมือง สันติภาพ สงคราม ทะเล เกาะ ฝน ถนน บ้าน หนังสือ จดหมาย
        """,
        _replaced(("ำ", "\u0e4d\u0e32"), ("แ", "เเ")),
    ),
    "Malayalam": (
        """
        അവൻ അവൾ അവർ കടൽ മഴയിൽ നദികൾ പാലങ്ങൾ കുട്ടികൾ അധ്യാപകൻ സർക്കാർ നിയമം വില നഗരം സമാധാനം യുദ്ധം ദ്വീപ്
        വഴി വീട് പുസ്തകം പത്രം കത്ത് മന്ത്രിമാർ തിരഞ്ഞെടുപ്പിൽ രാവിലെ ട്രെയിൻ
        """,
        _replaced(("ൻ", "ന\u0d4d\u200d"), ("ൾ", "ള\u0d4d\u200d"), ("ർ", "ര\u0d4d\u200d"), ("ൽ", "ല\u0d4d\u200d")),
    ),
    "Japanese": (
        """
        ガラス ニュース テレビ バス ホテル パン ビル ドア ゲーム スポーツ データ プール ペン ボール ズボン
        ジャム 政府 法律 市場 価格 都市 橋 川 学校 医者 選挙 平和 戦争 海 島
        """,
        lambda text: "".join(_HALF_WIDTH.get(letter, letter) for letter in decomposed(text)),
    ),
    "Vietnamese": (
        """
        cảng mở cửa sáng thứ hai chính phủ luật chợ giá thành phố cầu sông tàu trường trẻ em bác sĩ bộ
        trưởng bầu cử hòa bình chiến tranh biển đảo mặt trời mưa đường nhà sách báo thư gió núi ruộng lúa
        """,
        decomposed,
    ),
}
_HALF_WIDTH = {
    unicodedata.normalize("NFKC", chr(code)): chr(code)
    for code in range(0xFF66, 0xFF9E)
    if unicodedata.normalize("NFKC", chr(code)) != "ヲ"
} | {"\u3099": "\uff9e", "\u309a": "\uff9f"}

SIGNS: tuple[Pair, ...] = (
    ("the change was -5.2 in May", "the change was +5.2 in May"),
    ("the room costs $500 a month", "the room costs €500 a month"),
    ("a share of 5 % was sold", "a share of 5 ‰ was sold"),
    ("some 10⁶ cells were counted", "some 106 cells were counted"),
    ("a loss of (5) was booked", "a loss of 5 was booked"),
    ("we look for C++ developers", "we look for C# developers"),
    ("the warranty ✓ is included", "the warranty ✗ is included"),
    ("Part I. The design of dams", "Part II. The design of dams"),
    ("arranged 1.5 billion for it", "arranged 2.5 billion for it"),
    ("paid 1 500 euros for it", "paid 1 600 euros for it"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", type=Path)
    parser.add_argument("--copies", type=int, default=1_500)
    options = parser.parse_args()
    rows: dict[str, list[str]] = {name: [] for name in PRESETS}
    heads = []
    for name, bits in SETS.items():
        truth = read_set(options.data / name)
        sample = [text for text in Random(1).sample(truth.texts, 3_000) if text.strip()][:500]
        heads.append(f"{name} (setup: {measure(sample, get_scheme(DEFAULT_SCHEME), 1).recommended})")
        values, known = fingerprint_array(truth.texts)
        near = pairs_within(values, known, bits)
        copies = shared_copies(truth, options.copies)
        wrong = wrong_pairs(truth, near)
        for preset in PRESETS.values():
            cells = [known_pairs(truth, near, preset) if preset.max_distance <= bits else "-"]
            cells.append(f"{np.mean(is_reported(copies, preset)):.3f}")
            cells.append(f"{np.sum(is_reported(wrong, preset))}")
            rows[preset.name].append("; ".join(cells))
            print(name, preset.name, rows[preset.name][-1], file=sys.stderr, flush=True)
    heads += ["forms of letters", "tones", "signs"]
    forms = {name: pairs_of_forms(*language) for name, language in LANGUAGES.items()}
    tones = pairs_of_forms(LANGUAGES["Vietnamese"][0], without_marks)
    parts = sign_pairs(read_set(options.data / "reuters21578").texts)
    for preset in PRESETS.values():
        shares = {name: np.mean(is_reported(pairs, preset)) for name, pairs in forms.items()}
        below = ", ".join(f"{name} {share:.2f}" for name, share in shares.items() if share < 1)
        rows[preset.name].append(f"{np.mean(list(shares.values())):.3f}" + (f" ({below})" if below else ""))
        rows[preset.name].append(f"{np.sum(is_reported(tones, preset))} of {len(tones)}")
        rows[preset.name].append(f"{np.sum(is_reported(parts, preset, 'same'))} of {len(parts)}")
    print("| |", " | ".join(heads), "|")
    print("|---" * (len(heads) + 1) + "|")
    for name, cells in rows.items():
        print(f"| `{name}` |", " | ".join(cells), "|")


def pairs_within(values: NDArray[np.uint64], known: NDArray[np.bool_], bits: int) -> tuple[NDArray[np.int64], ...]:
    """Return left, right and distance of all pairs within so many bits."""
    places = np.flatnonzero(known)
    found = [(places[part.left], places[part.right], part.distance) for part in near_pairs(values[places], bits)]
    left, right, distance = (np.concatenate(column).astype(np.int64) for column in zip(*found, strict=True))
    return np.minimum(left, right), np.maximum(left, right), distance


def known_pairs(truth: Truth, near: tuple[NDArray[np.int64], ...], preset: Preset) -> str:
    left, right = (side[near[2] <= preset.max_distance] for side in near[:2])
    scores, _ = compare_pairs(truth.texts, left, right, measure=preset.text_measure(), bound=preset.similarity)
    kept = scores >= preset.similarity
    found = score(truth, zip(left[kept].tolist(), right[kept].tolist(), strict=True))
    shares = [found[name] for name in ("recall", "precision", "precision_forgiving")]
    return " / ".join("-" if share is None else f"{share:.3f}" for share in shares)


def shared_copies(truth: Truth, number: int) -> list[Pair]:
    """Return texts with an edited copy, the kinds of change in turn, that share .8 of the truth's shingles."""
    cut, chance = shingler(truth), Random(3)
    able = [text for text in truth.texts if SHORTEST <= len(text) < LONGEST]
    kinds = [edit for kind, edit in KINDS.items() if kind != NUMBERS]
    found = []
    for place, text in enumerate(chance.sample(able, min(number, len(able)))):
        changed = kinds[place % len(kinds)](text, chance)
        if changed is not None and changed != text:
            one, other = cut(text), cut(changed)
            found += [(text, changed)] if len(one & other) >= 0.8 * len(one | other) else []
    return found


def wrong_pairs(truth: Truth, near: tuple[NDArray[np.int64], ...]) -> list[Pair]:
    """Return pairs that are near in bits and share less than half, and pairs drawn at random."""
    listed = set(zip(truth.left.tolist(), truth.right.tolist(), strict=True))
    chance = Random(4)
    pairs = list(zip(near[0].tolist(), near[1].tolist(), strict=True))
    drawn = [pair for pair in chance.sample(pairs, min(len(pairs), 20_000)) if pair not in listed][: WRONG // 2]
    while len(drawn) < WRONG:
        one, other = sorted(chance.sample(range(len(truth.texts)), 2))
        drawn += [] if (one, other) in listed else [(one, other)]
    return [(truth.texts[one], truth.texts[other]) for one, other in drawn]


def is_reported(pairs: Sequence[Pair], preset: Preset, numbers: Numbers = "any") -> NDArray[np.bool_]:
    texts = [text for pair in pairs for text in pair]
    values, known = fingerprint_array(texts)
    left = np.arange(0, len(texts), 2)
    near = known[left] & known[left + 1] & (np.bitwise_count(values[left] ^ values[left + 1]) <= preset.max_distance)
    scores, _ = compare_pairs(texts, left, left + 1, measure=preset.text_measure(numbers), bound=preset.similarity)
    found: NDArray[np.bool_] = near & (scores >= preset.similarity)
    return found


def pairs_of_forms(words: str, change: Callable[[str], str]) -> list[Pair]:
    """Return texts of *words* drawn at random, each with the same in other code points."""
    chance = Random(5)
    texts = [" ".join(chance.choices(words.split(), k=WORDS)) for _ in range(TEXTS)]
    return [(text, change(text)) for text in texts]


def sign_pairs(texts: Sequence[str]) -> list[Pair]:
    """Return texts of news with a sentence in the middle that differs in one sign or number."""
    able = [text for text in texts if SHORTEST <= len(text) < LONGEST]
    found = []
    for place, text in enumerate(Random(6).sample(able, 300)):
        middle = text.find(" ", len(text) // 2) % len(text)
        found.append(tuple(f"{text[:middle]}. {part}. {text[middle:]}" for part in SIGNS[place % len(SIGNS)]))
    return [(one, other) for one, other in found]


if __name__ == "__main__":
    main()
