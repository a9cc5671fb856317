"""Small files for the commands of docs/steps: rows of which each page says what becomes of them."""

import gzip
import json
from pathlib import Path

from tests.transforms.read_fixtures import http, warc_record

RIVER = """The old railway ran along the river, and people of the valley used it for a hundred years. Every morning the
first train brought milk from the farms to the market in town. In winter the men of the station cleared the snow with
shovels before sunrise. My grandmother told me that the driver knew each child by name. When a new road was built on
the other bank, fewer passengers came, and the company closed the line. Some of us still remember the sound of the
whistle behind the mill. Last spring a group of friends began to repair the smallest bridge.""".replace("\n", " ")
BREAD = """Bread needs flour, water, salt and time. Mix the flour with the water in the evening and leave the dough in
a cool room. In the morning the dough has doubled, and you can add the salt and fold it three times. After an hour it
goes into a basket that you have lined with a cloth. Bake it for forty minutes, and let it cool on a rack. The crust
sings when it comes out of the oven, and the kitchen smells of it for the rest of the day.""".replace("\n", " ")
GERMAN = """Die alte Bahn fuhr am Fluss entlang, und die Leute im Tal benutzten sie hundert Jahre lang. Jeden Morgen
brachte der erste Zug Milch von den Höfen zum Markt in der Stadt. Im Winter räumten die Männer des Bahnhofs den Schnee
vor Sonnenaufgang mit Schaufeln. Als am anderen Ufer eine neue Straße gebaut wurde, kamen weniger Leute, und die
Gesellschaft schloss die Strecke. Manche von uns erinnern sich noch an den Pfiff hinter der Mühle.""".replace("\n", " ")
MENU = "Home | About | Contact"
PLACES = ("harbour", "forest", "market", "tower", "garden", "quarry", "lighthouse")
BROKEN = '{"id": "a8", "text": "broken'
KEY = "ghp_" + "".join(("16C7e42F", "292c6912", "E7710c83", "8347Ae17", "8B4a"))  # nobody's, in pieces for the audit


def line(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


A = [
    '{"id":  "a1", "text": ' + json.dumps(RIVER) + ', "n": 1e3}',  # whose bytes no writer of JSON would make
    line(id="a2", text=BREAD),
    "",
    line(id="a3", text=RIVER.replace(". ", ".\u00a0 \u200b\r\n")),  # a1, up to white space and what nobody sees
    line(id="a4", text=RIVER.replace("smallest", "oldest")),
    line(id="a5", text=""),
    line(id="a6", text=None),
    line(id="a7", body="x"),
    BROKEN,
    line(id="a9", text=GERMAN, reason="mine", language="unknown"),
]
B = [
    line(id="b1", text=BREAD),
    line(id="b2", text=f"Write to anna.smith@gmail.com or call +49 30 901820. Token: {KEY}"),
    line(id="b3", text="Too short to pass."),
    *(
        line(id=f"m{number}", text=f"{MENU}\nThe {place} opens at {number} in the morning, and all may come.")
        for number, place in enumerate(PLACES, 1)
    ),
]
NEW = [
    line(id="n1", text=RIVER.replace("milk", "cream")),
    line(id="n2", text="Nobody has seen this sentence about violins and their makers before."),
]


def html(*paragraphs: str) -> str:
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"<html><body><nav><a href='/'>Home</a></nav><article><h1>News</h1>{text}</article></body></html>"


PAGES = [line(id="p1", html=html(RIVER, BREAD)), line(id="p2", html=html(GERMAN), text="there"), line(id="p3", html="")]


def make_files(folder: Path) -> Path:
    """The files that the pages name: in/, new/, pages/, documents/ and crawl/."""
    for name, rows in {"in/a.jsonl": A, "in/b.jsonl": B, "new/new.jsonl": NEW, "pages/pages.jsonl": PAGES}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes("".join(f"{row}\n" for row in rows).encode())
    (folder / "in" / "2024").mkdir()
    (folder / "in" / "2024" / "c.jsonl.gz").write_bytes(gzip.compress(f"{A[0]}\n{A[3]}\n".encode()))
    (folder / "documents").mkdir()
    (folder / "documents" / "a.jsonl.gz").write_bytes(gzip.compress("".join(f"{row}\n" for row in B).encode()))
    records = [
        warc_record(http(html(RIVER).encode()), url="https://a.example/river"),
        warc_record(http(b"\x89PNG", ["Content-Type: image/png"]), url="https://a.example/picture.png"),
        warc_record(http(html(BREAD).encode()), url="https://a.example/bread"),
    ]
    (folder / "crawl").mkdir()
    (folder / "crawl" / "17.warc.gz").write_bytes(b"".join(gzip.compress(record) for record in records))
    return folder
