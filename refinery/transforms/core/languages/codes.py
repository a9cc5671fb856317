"""Codes of languages: from the labels of models to what the funnel's stages know, and the scripts that labels name.

GlotLID (Kargaran et al. 2023), OpenLID and NLLB's model label texts by ISO 639-3 code and script, `eng_Latn`; lid.176
by ISO 639-1 code where there is one, `en`. Lists, thresholds and models of the stages are by the latter. A language and
a script together are written `en_Latn`.
"""

import re

# ISO 639-1 <- ISO 639-3: the code itself, and of a macrolanguage the member that is meant where nothing else is said
# (Standard Arabic is `ar`, Egyptian Arabic stays `arz`). Source: the language aliases of Unicode's CLDR, as
# Babel 2.18 has them; but for `sh`, `no` and `tl`, which lid.176 calls so.
_ALIASES = (
    "aa=aar ab=abk ae=ave af=afr ak=aka,fat,twi am=amh an=arg ar=ara,arb as=asm av=ava ay=aym,ayr az=aze,azj ba=bak "
    "be=bel bg=bul bi=bis bm=bam bn=ben bo=bod br=bre bs=bos ca=cat ce=che ch=cha co=cos cr=cre,cwd cs=ces cu=chu "
    "cv=chv cy=cym da=dan de=deu dv=div dz=adp,dzo ee=ewe el=ell en=eng eo=epo es=spa et=ekk,est eu=eus fa=fas,pes "
    "ff=fuc,ful fi=fin fj=fij fo=fao fr=fra fy=fry ga=gle gd=gla gl=glg gn=grn,gug gu=guj,prp gv=glv ha=hau he=heb "
    "hi=hin ho=hmo hr=hrv ht=hat hu=hun hy=hye hz=her ia=ina id=ind ie=ile ig=ibo ii=iii ik=esk,ipk io=ido is=isl "
    "it=ita iu=ike,iku ja=jpn jv=jav ka=kat kg=kng,kon ki=kik kj=kua kk=kaz kl=kal km=khm kn=kan ko=kor kr=kau,knc "
    "ks=kas ku=kmr,kur kv=kom,kpv kw=cor ky=kir la=lat lb=ltz lg=lug li=lim ln=lin lo=lao lt=lit lu=lub lv=lav,lvs "
    "mg=mlg,plt mh=mah mi=mri mk=mkd ml=mal mn=drh,khk,mon mr=mar ms=msa,zsm mt=mlt my=mya na=nau nd=nde ne=nep,npi "
    "ng=ndo nl=nld nn=nno no=nob,nor nr=nbl nv=nav ny=nya oc=oci oj=ojg,oji om=gaz,orm or=ori,ory os=oss pa=pan "
    "pi=pli pl=pol ps=pbu,pus pt=por qu=que,quz rm=roh rn=run ro=ron ru=rus rw=kin sa=cls,san sc=src,srd sd=snd "
    "se=sme sg=sag sh=hbs si=sin sk=slk sl=slv sm=smo sn=sna so=som sq=als,sqi sr=srp ss=ssw st=sot su=sun sv=swe "
    "sw=swa,swh ta=tam te=tel tg=tgk th=tha ti=tir tk=tuk tl=fil,tgl tn=tsn to=ton tr=tur ts=tso tt=tat ty=tah "
    "ug=uig uk=ukr ur=urd uz=uzb,uzn ve=ven vi=vie vo=vol wa=wln wo=wol xh=xho yi=ydd,yid yo=yor za=zha,zyb "
    "zh=cmn,zho zu=zul "
)
CODES = {
    member: code
    for entry in _ALIASES.split()
    for code, _, members in [entry.partition("=")]
    for member in members.split(",")
}

_LABEL = re.compile(r"([a-z]{2,3})_([A-Z][a-z]{3})(?:_.*)?")


def language_and_script(label: str) -> tuple[str, str]:
    """(code, script) of a label without "__label__"; the label itself and "" where it names no script.

    >>> language_and_script("arb_Arab"), language_and_script("arz_Arab"), language_and_script("en")
    (('ar', 'Arab'), ('arz', 'Arab'), ('en', ''))
    """
    found = _LABEL.fullmatch(label)
    return (CODES.get(found[1], found[1]), found[2]) if found else (label, "")


def canonical(name: str) -> str:
    """A language as a recipe or a table may call it, as the stages do: `eng_Latn` and `en_Latn` are `en_Latn`."""
    return with_script(*language_and_script(name))


def with_script(code: str, script: str) -> str:
    """The name of a language in a script."""
    return f"{code}_{script}" if script else code
