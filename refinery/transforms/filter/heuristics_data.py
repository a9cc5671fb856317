"""What the heuristics know about languages: stop words, and how long words are. Codes are those of the language stage.

Stop words: Gopher's eight for English (Rae et al. 2021, appendix A1.1); for the others articles, pronouns,
conjunctions, prepositions, particles and forms of "to be" from the languages' grammars, ten to fourteen of the most
frequent, chosen so that two of them are in nearly every 50 words of prose. In Chinese and Japanese a word is one
character. Korean, Tamil, Thai, Lao, Khmer and Myanmar have no list: their function words are suffixes, or of several
characters.

Word lengths: Gopher's bounds of 3 and 10 characters are made for English. For another language both are multiplied by
its mean word length over that of English, so they mean the same there. Amharic and Javanese are left out: some of
their texts have other word separators or scripts. `benchmarks/heuristics_languages.py` checks both
tables and makes the second; what it measured is in docs/benchmarks/heuristics-languages.md.
"""

_STOP_WORDS = {
    "en": "the be to of and that have with",
    "de": "der die das und von mit ist zu in den nicht auf ein für",
    "fr": "le la les de et est que dans des en un une à pour",
    "es": "el la los de y es que en un una las por con se",
    "it": "il la di e che è in un una per le con non del",
    "pt": "o a os de e é que em um uma para com não do da",
    "ca": "el la els de i és que en un una per les amb del",
    "gl": "o a os de e é que en un unha para con non do da",
    "ro": "și de la în a nu cu pe un o din care este pentru",
    "nl": "de het een en van in is dat te op met niet voor zijn",
    "af": "die en van in is 'n wat te op met nie vir het om",
    "sv": "och att det i en som är på av för med den till inte",
    "da": "og at det i en som er på af for med den til ikke",
    "no": "og at det i en som er på av for med den til ikke",
    "nn": "og at det i ein som er på av for med den til ikkje",
    "is": "og að í á er sem til um með því hann við ekki eða fyrir",
    "fi": "ja on ei se että oli ovat tai kun mutta myös joka hän niin",
    "et": "ja on ei see et oli ning või kui ka mis oma ta",
    "hu": "a az és hogy nem is egy van meg de vagy minden",
    "lv": "un ir ar uz no kas ka par vai lai viņa tiesības nav to",
    "lt": "ir yra į su kad iš ne kaip ar tai bei turi jo visi",
    "pl": "i w na z do nie się jest to że o jak po lub",
    "cs": "a v na se je do s z to že pro o nebo i",
    "sk": "a v na sa je do s z to že pre o alebo i",
    "sl": "in v na se je za z da so ki ne po ali pri",
    "hr": "i u na se je za s da su od ne koji ili to",
    "bs": "и у на се је за да су од i u na se je za sa da su od",
    "sh": "и у на се је за да су од i u na se je za sa da su od",
    "sr": "и у на се је за са да су од i u na se je za sa da su od",
    "mk": "и во на се е за со да од не што или тоа",
    "bg": "и в на се е за с да от не че или това са",
    "ru": "и в на не что с по как к из от за или это",
    "uk": "і в на не що з до та у за як або й це",
    "be": "і ў на не што з да у за як або гэта па",
    "el": "και το η ο να της του στο με για τα είναι την από",
    "sq": "të e në dhe për që me një i nga është ose të",
    "tr": "ve bir bu da de için ile ne çok o olarak her daha veya",
    "az": "və bir bu da də üçün ilə hər o olan ya hüququ",
    "id": "yang dan di dari untuk dengan ini itu tidak pada dalam adalah ke",
    "ms": "yang dan di dari untuk dengan ini itu tidak pada dalam adalah ke atau",
    "tl": "ang ng sa na at mga ay si ito hindi para may",
    "vi": "và của là có trong các được cho một không người với những",
    "sw": "na ya wa kwa ni katika za la kuwa kila au haki",
    "ga": "an na agus ar a is i go le ag bhí sé do",
    "cy": "y yn a i yr o ar mae ac ei wedi am",
    "eu": "eta da ez du bat dira edo dute ere bere beste izan baten",
    "eo": "la kaj de en estas al ne kiu por oni ke aŭ",
    "ar": "في من على أن إلى ما هذا التي لا كل أو عن",
    "fa": "و در به از که را این با است هر یا آن",
    "ur": "کے میں کی ہے اور سے کو کا اس نے کہ پر",
    "he": "של את על לא כל הוא או זה עם גם היא כי",
    "hi": "के में की है और से को का इस ने कि पर",
    "mr": "आहे व आणि या हे किंवा तो असे ते नाही",
    "bn": "এবং ও এই না করে তার থেকে একটি যে জন্য এর হয়",
    "zh": "的 是 在 不 了 有 和 人 这 一 我 為 之",
    "ja": "の は に を た が で と し て る い",
}

STOP_WORDS: dict[str, tuple[str, ...]] = {
    language: tuple(dict.fromkeys(words.split())) for language, words in _STOP_WORDS.items()
}
# Mean word length over that of English (5.0 characters in the same texts).
_WORD_LENGTHS = """
af 0.99, als 1.03, ar 0.97, ast 1.02, az 1.29, bcl 1.07, be 1.20, bg 1.08, bh 0.82, bn 1.13, br 0.91,
bs 1.05, ca 0.99, ceb 1.07, ckb 1.01, co 0.91, cs 1.10, cy 0.97, da 1.05, de 1.20, dv 1.75, el 1.11, eo 1.03, es
1.08, et 1.29, eu 1.35, fa 0.84, fi 1.55, fr 1.02, fy 1.01, ga 0.96, gd 0.98, gl 1.04, gu 1.05, gv 0.98, he
0.94, hi 0.84, hr 1.08, hsb 1.17, ht 0.82, hu 1.30, hy 1.31, ia 1.02, id 1.28, ilo 1.17, io 1.00, is 1.05, it
1.08, ka 1.47, kk 1.34, kn 1.60, ko 0.68, ku 0.91, ky 1.35, la 1.25, lb 1.09, lt 1.30, lv 1.27, mg 1.20, min
1.26, mk 1.04, ml 2.02, mn 1.20, mr 1.21, ms 1.25, mt 1.26, mwl 1.00, nds 0.93, ne 1.12, nl 1.07, nn 0.99, no
1.03, oc 0.98, pa 0.80, pam 1.10, pl 1.24, pnb 0.72, ps 0.70, pt 1.04, rm 1.08, ro 1.04, ru 1.22, sa 1.82, sco
0.94, sd 0.79, si 1.13, sk 1.12, sl 1.10, so 1.13, sq 0.97, sr 1.03, su 1.25, sv 1.10, sw 1.11, ta 1.78, te
1.53, tg 1.07, tk 1.35, tl 1.08, tr 1.37, tt 1.26, ug 1.41, uk 1.18, ur 0.70, uz 1.39, vec 0.88, vi 0.71, wa
1.03, war 1.04, yi 1.07, yo 0.88
"""

WORD_LENGTHS: dict[str, float] = {
    language: float(ratio) for language, ratio in map(str.split, _WORD_LENGTHS.split(","))
}
