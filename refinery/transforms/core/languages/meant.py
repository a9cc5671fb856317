"""Which language somebody meant who wrote `eng`, `English` or `zh-CN`: only for messages, nothing is converted."""

import re
from collections.abc import Collection

from refinery.transforms.core.languages.codes import CODES
from refinery.transforms.core.wording import closest

# Code=English name, of the languages that lid.176 knows. Source: Unicode's CLDR, as Babel 2.18 has it, and other names
# in use.
_NAMES = (
    "af=Afrikaans am=Amharic an=Aragonese ar=Arabic arz=Egyptian-Arabic as=Assamese ast=Asturian av=Avaric "
    "az=Azerbaijani ba=Bashkir bar=Bavarian be=Belarusian bg=Bulgarian bn=Bangla,Bengali bo=Tibetan "
    "bpy=Bishnupriya br=Breton bs=Bosnian ca=Catalan,Valencian ce=Chechen ceb=Cebuano ckb=Central-Kurdish,Sorani "
    "co=Corsican cs=Czech cv=Chuvash cy=Welsh da=Danish de=German dsb=Lower-Sorbian dv=Divehi el=Greek en=English "
    "eo=Esperanto es=Spanish,Castilian et=Estonian eu=Basque fa=Persian,Farsi fi=Finnish fr=French "
    "frr=Northern-Frisian fy=Western-Frisian,Frisian ga=Irish gd=Scottish-Gaelic gl=Galician gn=Guarani "
    "gu=Gujarati gv=Manx he=Hebrew hi=Hindi hif=Fiji-Hindi hr=Croatian hsb=Upper-Sorbian ht=Haitian-Creole "
    "hu=Hungarian hy=Armenian ia=Interlingua id=Indonesian ie=Interlingue ilo=Iloko io=Ido is=Icelandic "
    "it=Italian ja=Japanese jbo=Lojban jv=Javanese ka=Georgian kk=Kazakh km=Khmer kn=Kannada ko=Korean "
    "krc=Karachay-Balkar ku=Kurdish,Kurmanji kv=Komi kw=Cornish ky=Kyrgyz la=Latin lb=Luxembourgish lez=Lezghian "
    "li=Limburgish lmo=Lombard lo=Lao lrc=Northern-Luri lt=Lithuanian lv=Latvian mai=Maithili mg=Malagasy "
    "min=Minangkabau mk=Macedonian ml=Malayalam mn=Mongolian mr=Marathi mrj=Western-Mari ms=Malay mt=Maltese "
    "mwl=Mirandese my=Burmese myv=Erzya mzn=Mazanderani nap=Neapolitan nds=Low-German ne=Nepali new=Newari "
    "nl=Dutch nn=Nynorsk no=Norwegian,Bokmal oc=Occitan or=Odia,Oriya os=Ossetic pa=Punjabi pam=Pampanga "
    "pfl=Palatine-German pl=Polish pms=Piedmontese ps=Pashto,Pushto pt=Portuguese qu=Quechua rm=Romansh "
    "ro=Romanian ru=Russian rue=Rusyn sa=Sanskrit sah=Yakut sc=Sardinian scn=Sicilian sco=Scots sd=Sindhi "
    "sh=Serbo-Croatian si=Sinhala,Sinhalese sk=Slovak sl=Slovenian,Slovene so=Somali sq=Albanian sr=Serbian "
    "su=Sundanese sv=Swedish sw=Swahili ta=Tamil te=Telugu tg=Tajik th=Thai tk=Turkmen tl=Tagalog,Filipino "
    "tr=Turkish tt=Tatar tyv=Tuvinian ug=Uyghur,Uighur uk=Ukrainian ur=Urdu uz=Uzbek vec=Venetian vep=Veps "
    "vi=Vietnamese vls=West-Flemish vo=Volapuk wa=Walloon war=Waray wuu=Wu-Chinese xal=Kalmyk xmf=Mingrelian "
    "yi=Yiddish yo=Yoruba yue=Cantonese zh=Chinese,Mandarin "
)
NAMES = {
    name.lower(): code
    for entry in _NAMES.split()
    for code, _, names in [entry.partition("=")]
    for name in names.split(",")
}


def meant_language(name: str, known: Collection[str]) -> str:
    """The one of the known codes that is probably meant, "" where there is none.

    >>> [meant_language(name, ("en", "zh", "de")) for name in ("eng", "English", "zh-CN", "Germn", "tlh")]
    ['en', 'en', 'zh', 'de', '']
    """
    lowered = name.strip().lower()
    first = re.split(r"[-_ ]", lowered)[0]
    for each in (lowered, lowered.replace(" ", "-"), first):
        for code in (each, CODES.get(each), NAMES.get(each)):
            if code in known:
                return str(code)
    return NAMES.get(closest(lowered, NAMES, 0.8), "") if len(lowered) > 3 else ""
