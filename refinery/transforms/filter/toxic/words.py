"""Offensive words by language, for the stage `toxicity` to recognise pages that consist of abuse.

Source and purpose: compiled by hand for this project from common knowledge of the languages, to be measured against;
no published list was copied, so no other licence applies. Whoever needs more names files of their own (`word_lists`).

What belongs here: words and phrases that insult, degrade or threaten by themselves. What may not: names of groups
of people (by faith, origin, colour, sex, orientation, disability: GROUP_NAMES), neutral sexual and anatomical words,
and words that groups use of themselves. C4's list has such names and therefore removed texts by and about minorities
(Dodge et al. 2021, "Documenting Large Webtext Corpora"). Tests hold the lists free of GROUP_NAMES.

Notation: entries between spaces; `_` is a space inside a phrase; `stem/x` stands for the stem with each ending of the
rule x of its language (ENDINGS). SEVERE: slurs. STRONG: profanity, insults, calls for violence. MILD: ruder than
neutral, but common in ordinary prose. Slurs that are as often something else (an embankment, an animal, a parasite of
biology) are left out, or are HARMLESS in a phrase.
"""

SEVERE = {
    "en": """
        nigger/n nigga/n niggerish faggot/n faggy faggotry kike/n spic/n spick/n chink/n gook/n wetback/n coon/n
        raghead/n towelhead/n sandnigger/n camel_fucker/n goat_fucker/n tranny trannies retard/n retarded
        libtard/n
        paki/n jigaboo/n shemale/n subhuman/n untermensch/n kill_yourself kys hope_you_die rapefugee/n feminazi/n
    """,
    "de": """
        kanake/d nigger/n untermensch untermenschen schwuchtel/f vergasen_sollte_man gehören_vergast
        bring_dich_um
    """,
    "fr": "nègre/n négresse/n bougnoule/n youpin/a bicot/n tapette/n tarlouze/n pédale/n va_crever va_te_tuer",
    "es": "sudaca/n maricón maricones sidoso/o muérete_ya deberían_matarlos",
    "it": "negro_di_merda frocio froci ricchione ricchioni terrone terroni devi_morire",
    "pt": "viado/n bicha_nojenta macaco_imundo traveco/n merece_morrer",
    "nl": "kankerlijer/n kankerhoer/n mietje/n ga_dood",
    "pl": "pedał/m ciapaty/a czarnuch/m zdychaj do_gazu",
    "ru": """
        хач/m чурка/f чурок жид/m хохол хохлы хохлов пидор/m пидорас/m пидарас/m сдохни убей_себя черножопый/a
    """,
    "uk": "жид/m москаль/m кацап/m підор/m підар/m здохни",
    "sv": "blatte/s neger/s bögjävel/s dö_din",
    "tr": "ibne/t gebersin",
}

STRONG = {
    "en": """
        fuck/v fuckin fucked_up fuckface/n fuckhead/n fuckwit/n fuckery motherfuck/v clusterfuck/n unfuck/v
        mindfuck/n
        fuk/v fuq fck/v fvck phuck/v fcuk/v wtf stfu gtfo
        shit/n shitty shittier shittiest shitting shitted shithead/n shithole/n shitbag/n shitshow/n shitface/n
        shitfaced shitter/n bullshit/n bullshitt/v bullshitting horseshit dipshit/n dumbshit/n batshit apeshit
        piece_of_shit pieces_of_shit
        asshole/n arsehole/n ass_hole/n asshat/n asswipe/n jackass/x dumbass/x smartass/x fatass/x badass/x
        azzhole/n
        asslicker/n kiss_my_ass
        bitch/x bitchy bitching bitched bitchass biatch sonofabitch son_of_a_bitch sons_of_bitches
        cunt/n cunty twat/n slut/n slutty sluttish whore/n whoring skank/n skanky fag/n thot/n
        bastard/n prick/n dickhead/n dickwad/n dickface/n cocksuck/v cocksucker/n wank/v wanker/n tosser/n
        bellend/n
        knobhead/n douche/n douchebag/n douchey scumbag/n scum dirtbag/n sleazebag/n scuzzball/n
        blowjob/n cumshot/n cumslut/n gangbang/v milf/n porn porno/n handjob/n deepthroat/v creampie/n bukkake
        dildo/n jizz titties
        piss_off pissed_off pissing_me_off pisses_me_off piss_me_off
        moron/n moronic idiot/n idiotic idiocy imbecile/n imbecilic dimwit/n nitwit/n halfwit/n dumbfuck/n
        numbskull/n
        dumbo/n cretin/n cretinous simpleton/n bonehead/n knucklehead/n pinhead/n airhead/n lowlife/n degenerate/n
        troglodyte/n pervert/n sleazy sicko/n psycho/n wacko/n nutjob/n lunatic/n asinine crackpot/n
        human_trash human_garbage human_filth
        deserve_to_die deserves_to_die should_be_shot should_be_hanged should_be_killed should_be_exterminated
        should_be_gassed should_be_lynched should_be_raped should_be_slaughtered should_all_die should_all_be_shot
        should_all_be_hanged should_all_be_killed should_all_be_gassed kill_them_all gas_them_all
        shut_the_fuck_up shut_the_hell_up go_to_hell rot_in_hell burn_in_hell drop_dead
    """,
    "de": """
        arschloch arschlöcher arschgeige/f arschkriecher/d arschgesicht fick/w ficker/d ficken gefickt verfickt/a
        fotze/f hure/f hurensohn hurensöhne nutte/f schlampe/f scheisse scheiss/a scheisskerl/d beschissen/a
        verschissen/a wichser/d wichsen gewichst drecksau drecksäue drecksack dreckskerl/d missgeburt/d mistkerl/d
        miststück miststücke schweinehund/d bastard/d vollidiot/d idiot/d trottel/d depp/d spast/d schwachkopf
        hackfresse/f halt_die_fresse halts_maul verpiss_dich leck_mich_am_arsch abschaum geisteskrank/a dummkopf
    """,
    "fr": """
        putain/n pute/n fils_de_pute connard/n connasse/n conne/n con_de connerie/n salope/n salopard/n enculé/a
        encule/n enculer niquer nique_ta_mère ta_gueule ferme_ta_gueule merde/n merdique/n emmerder emmerdeur/n
        branleur/n branler trou_du_cul casse_couilles bordel_de_merde ordure/n débile/n crétin/a abruti/a
        imbécile/n
        pétasse/n garce/n poufiasse/n bouffon/n sac_à_merde va_te_faire_foutre foutre_le_camp
    """,
    "es": """
        puta/n puto/n putas hijo_de_puta hijos_de_puta hijoputa/n mierda/n gilipollas cabrón cabrones cabrona/n
        coño/n joder jodido/o jodete pendejo/o chinga/n chingar chingada chingado/o tu_puta_madre culero/o imbécil
        imbéciles idiota/n estúpido/o zorra/n perra_de_mierda capullo/o mamón mamones mamada/n verga/n follar
        comemierda/n malparido/o hijueputa gonorrea/n huevón weón boludo/o pelotudo/o forro_de_mierda escoria
        vete_a_la_mierda que_te_jodan
    """,
    "it": """
        cazzo cazzi cazzata cazzate incazzato incazzata vaffanculo fanculo stronzo stronza stronzi stronze
        stronzata
        merda merde puttana puttane troia troie zoccola zoccole figlio_di_puttana figli_di_puttana coglione
        coglioni
        minchia bastardo bastardi bastarda testa_di_cazzo pezzo_di_merda rompicoglioni cagare deficiente
        deficienti
        cretino cretina cretini idiota idioti imbecille imbecilli sfigato feccia
    """,
    "pt": """
        porra caralho/n merda/n puta/n filho_da_puta filhos_da_puta foder fodase foda-se fodido/o cu_de cuzão
        cuzões
        buceta/n boceta/n piranha_suja vadia/n vagabunda/n arrombado/o babaca/n otário/o corno/n desgraçado/o
        imbecil imbecis idiota/n cretino/o escroto/o punheta/n punheteiro/n vai_se_foder vai_tomar_no_cu escória
    """,
    "nl": """
        klootzak klootzakken kut kutwijf kutwijven hoer/n hoeren hoerenzoon lul/n eikel/n godverdomme verdomme
        tering
        teringlijer/n tyfus tyfuslijer/n kanker_op klote kolere neuken geneukt neukt schijt rotzak rotzakken
        trut trutten slet sletten idioot idioten debiel debielen sukkel/n achterlijk/e smeerlap smeerlappen
        uitschot
        rot_op hou_je_bek
    """,
    "pl": """
        kurwa kurwy kurwę kurwo kurew kurwą kurewski/a kurwiarz/m skurwysyn/m skurwiel/m chuj/m chujowy/a pizda
        pizdy
        pizdo jebać jebany/a jebane jebie jebał zajebisty/a wyjebać zjebany/a pojebany/a pierdolić pierdol
        pierdolę
        pierdolony/a spierdalaj spierdalać wypierdalaj pierdolisz suka suki suko dziwka dziwki dziwko szmata
        szmato
        gówno gówna gówniany/a dupek dupki debil/m idiota idioci idiotka kretyn/m cwel/m skurczybyk/m ścierwo
        śmieć
    """,
    "ru": """
        хуй хуя хую хуем хуи хуев хуйня хуйню хуйни хуйло хуесос/m хуёвый/a хуевый/a нахуй похуй охуел охуеть
        охуели
        нихуя пизда/f пиздец пиздёж пиздеж пиздить пиздит спиздил пиздабол/m распиздяй/m блядь бляди блядей
        блядский/a
        блять бля ебать ебал ебут ебёт ебет ебаный/a ёбаный/a еблан/m ебло ебанутый/a заебал заебали заебись
        выебать
        проебал уёбок уебок ублюдок ублюдки ублюдка сука суки суку сукой сучка/f сучара мудак/m мудило мудила
        говно говна говном говнюк/m дерьмо дерьма дерьмом засранец засранцы шлюха/f шалава/f гнида гниды мразь
        мрази
        тварь_ебаная долбоёб/m долбоеб/m дебил/m идиот/m кретин/m придурок придурки козёл_вонючий жопа/f жопой
        сволочь сволочи подонок подонки урод_моральный заткнись отвали дегенерат/m
    """,
    "uk": """
        хуй хуя хуєм хуйня хуйню хуйло хуїв хуйовий/a нахуй похуй пизда/f піздець пиздець блядь бляді блять їбати
        їбаний/a єбати єбаний/a єбучий/a заїбав курва/f сука/f сучка/f мудак/m гівно гівна лайно лайна шльондра/f
        хвойда/f виродок виродки довбойоб/m довбойоби придурок придурки дебіл/m ідіот/m падлюка/f падло гнида/f
    """,
    "cs": """
        kurva kurvy kurvo do_prdele prdel/m píča píčo píčovina kokot/m kokoti kunda kundy čurák/m čuráci mrdat
        zmrd/m
        zmrdi vymrdaný hovno hovna sráč/m sráči posraný zasraný jebat zajebaný děvka děvky děvko svině_jedna
        debil/m
        blbec blbci kretén/m kreténi hajzl/m hajzlové parchant/m vyser_se vypadni_ty
    """,
    "sv": """
        fitta fittan fittor kuksugare horunge/s jävlar jävla jävel fan_ta helvetes_jävla knulla knullar skitstövel
        skitstövlar skithög rövhål as_jävel idiot/s kärring_jävel håll_käften dra_åt_helvete mongo/s cp-skadad
        pucko/s
    """,
    "da": """
        fisse/s kælling/s luder/s røvhul røvhuller lortehul kraftedeme pikhoved idiot/s skiderik skiderikker
        hold_kæft
    """,
    "no": """
        fitte/s kjerring_faen rasshøl hestkuk jævla jævel faen_ta drittsekk/s hore/s idiot/s hold_kjeft forpulte
    """,
    "fi": """
        vittu vitun vittuun vituttaa vitut perkele perkeleen saatana saatanan paska paskan paskaa paskat paskapää
        kusipää kusipäät kusipään mulkku mulkut mulkun huora huoran huorat runkkari runkkarit kyrpä kyrvän pillu
        pillun äpärä idiootti idiootit haista_vittu turpa_kiinni
    """,
    "hu": """
        kurva/h kurvák basz/h baszd_meg bazdmeg baszni faszom fasz faszok faszfej/h seggfej/h picsa/h picsába
        geci/h
        köcsög/h szar szaros szarházi ribanc/h rohadék/h idióta/h hülye_picsa kretén/h
    """,
    "ro": """
        pula pulă pizda pizdă muie muist/r futu-ți fute futut curva curvă curve curvelor căcat rahat cretin/r
        idiot/r
        bou_prost nesimțit/r dobitoc/r jegos labagiu
    """,
    "tr": """
        amk amına_koyayım amına_koyim orospu/t orospu_çocuğu orospu_çocukları siktir siktirgit sikerim sikeyim
        sikik
        sikiş göt_herif götveren/t yarrak/t piç/t kahpe/t pezevenk/t şerefsiz/t gerizekalı/t salak_herif aptal/t
        geri_zekalı puşt/t it_herif ağzına_sıçayım
    """,
    "id": "bangsat bajingan kontol memek ngentot anjing_lu jancok pelacur tolol goblok brengsek perek keparat",
    "vi": "địt đụ_má địt_mẹ đéo lồn cặc đĩ đồ_ngu thằng_chó con_đĩ mẹ_mày vãi_lồn óc_chó khốn_nạn",
    "el": """
        μαλάκα μαλάκας μαλάκες γαμώ γαμημένε γαμημένος γαμημένη γαμήσου πουτάνα πουτάνες σκατά αρχίδι αρχίδια
        ηλίθιος καριόλα καριόλη
    """,
    "bg": """
        курва/f путка/f хуй педераст/m мамка_ти копеле копелета идиот/m дебил/m шибан/m гъз лайно лайна
        боклук_човешки
    """,
    "ar": """
        كسمك كس_أمك كس_امك شرموطة شرموط شراميط عاهرة قحبة ابن_الكلب ابن_القحبة ابن_الشرموطة منيوك خرا زب طيز
        حقير الحقير لعنك_الله
    """,
    "fa": "کیر کیری کس_کش کسکش جنده حرامزاده مادرجنده مادر_جنده گوه گه_خوردی بی_شرف کونی احمق_بیشعور",
    "he": "זונה בן_זונה בני_זונות שרמוטה כוס_אמק כוסאמק זין חרא מניאק מטומטם מטומטמת",
    "hi": """
        चूतिया चूतिये मादरचोद बहनचोद भोसड़ी भोसड़ीके रंडी हरामी हरामजादा हरामज़ादा कमीना कमीने गांडू लौड़ा
        साला_कुत्ता chutiya madarchod behenchod bhosdike gandu harami randi
    """,
    "ja": """
        くそったれ クソ野郎 糞野郎 クソガキ 死ね くたばれ ばか野郎 バカ野郎 馬鹿野郎 キチガイ きちがい ヤリマン
        まんこ ちんぽ ゲス野郎 ゴミクズ 人間のクズ
    """,
    "ko": """
        씨발/k 시발/k 씨팔/k 씹새끼/k 개새끼/k 병신/k 지랄/k 좆같은 좆까 존나 졸라 미친놈/k 미친년/k 쌍년/k
        창녀/k 걸레년
        엿먹어 꺼져 니미럴 호로새끼/k
    """,
    "zh": """
        傻逼 傻屄 操你妈 操你媽 肏你妈 草泥马 他妈的 他媽的 妈的逼 去你妈的 狗日的 王八蛋 婊子 贱人 賤人 贱货
        鸡巴 雞巴 屌你老母 滚你妈 脑残 腦殘 畜生不如
        狗娘养的 混账东西 去死吧 垃圾人渣
    """,
    "th": "เหี้ย ไอ้สัตว์ ไอ้เหี้ย อีเหี้ย อีดอก ควย หี เย็ดแม่ เย็ด ไอ้ควาย กะหรี่ แม่มึง ระยำ",
}

MILD = {
    "en": """
        stupid stupidest stupidity dumb dumber dumbest ignorant ignoramus/x pathetic loser/n liar/n crap crappy
        bullcrap
        damn damned goddamn goddamned hell_hole hypocrite/n clown/n fool/n foolish jerk/n creep/n scoundrel/n
        thug/n
        coward/n disgusting despicable vile worthless trash garbage sickening repulsive crook/n tits boobs
        ridiculous nonsense insane arrogant brainless mindless trolls silly
        hooker/n cripple/n mongoloid/n hate/z despise/z detest disgust/v
    """,
    "de": "dumm/a blöd/a doof/a mist verdammt/a widerlich/a lügner/d heuchler/d ekelhaft/a",
    "fr": "stupide/n idiot/a dégueulasse/n menteur/n nul/a",
    "es": "tonto/o basura asco mentiroso/o asqueroso/o ridículo/o",
    "ru": "дурак/m дура/f тупой/a лжец лжецы чёрт_возьми",
}

# Phrases that hold an entry and offend nobody.
HARMLESS = {
    "en": """
        maine_coon maine_coons coon_cat coon_cats coon_rapids coon_hound coon_hounds chink_in chinks_in
        spick_and_span
        spic_and_span retard_the to_retard moby_dick faggot_of faggots_of
    """,
}

# Endings of a rule, `-` for none, by language ("" holds for all).
ENDINGS = {
    "": {"n": "- s"},
    "en": {
        "x": "- es",
        "v": "- s ed er ers ing in ings",
        "z": "- d s rs",
    },
    "de": {"d": "- e en er es n s", "f": "- n", "w": "e en st t te ten er ers end", "a": "- e en em er es"},
    "fr": {"a": "- e s es"},
    "es": {"o": "o a os as"},
    "pt": {"o": "o a os as"},
    "nl": {"e": "- e"},
    "pl": {"m": "- a owi em u y i ów om ami ach ie", "a": "y a e i ego ej emu ym ych ą ymi"},
    "ru": {
        "m": "- а у ом е ы и ов ам ами ах",
        "f": "а ы и у е ой ою ам ами ах",
        "a": "ый ая ое ые ого ому ым ом ую ой ых ыми ий",
    },
    "uk": {"m": "- а у ом і и ів ам ами ах", "f": "а и у і ою ам ами ах", "a": "ий а е і ого ому им у ої их ими"},
    "bg": {"m": "- и а ът ите", "f": "а и ата ите"},
    "cs": {"m": "- a e u i y em ů ům ech ové"},
    "sv": {"s": "- n en et ar er r arna erna s"},
    "da": {"s": "- n en et er r erne s"},
    "no": {"s": "- n en et er r ene s"},
    "hu": {"h": "- k ok ek t ot et nak nek d a ja ba"},
    "ro": {"r": "- ul ului i ii ilor ă"},
    "tr": {"t": "- lar ler ı i u ü ın in un ün lı sun sın"},
    "ko": {"k": "- 아 야 이 은 는 을 를 들 들이 들아 놈 년 같은 하네 한다 이다 이네"},
}

# Words of reported speech: what follows one in its sentence is mentioned rather than said.
REPORTING = {
    "en": """
        call calls called calling say says said saying tell tells told telling term termed labelled labeled label
        labels describe describes described describing write writes wrote writing tweet tweeted tweets slur slurs
        insult insults phrase word words quote quoted statement statements stereotype stereotypes rhetoric
        claim claims claimed claiming
    """,
    "de": """
        sagt sagte sagen nennt nannte nennen genannt schreibt schrieb behauptet behaupten beschimpft bezeichnet
        wort
    """,
    "fr": "dit disent dire disait appelle appelé appeler traite traité traiter écrit prétend mot insulte",
    "es": "dice dijo decir dicen llama llamó llamar llamaron escribe escribió palabra insulto",
    "ru": "сказал говорит говорят назвал называет называть написал слово оскорбление",
}
# The same in the first person is said, not reported.
FIRST_PERSON = {"en": "i im ive we", "de": "ich wir", "fr": "je jai nous", "es": "yo digo", "ru": "я мы"}

# Entries of the English list that are ordinary words elsewhere: they do not count in documents of these languages.
ORDINARY = {
    "sv": "slut bitch prick hate hooker",
    "da": "slut prick hate",
    "no": "slut prick hate",
    "de": "prick",
    "nl": "slut prick hate loser",
    "fr": "retard retards douche douches idiot insane degenerate",
    "es": "coon paki insane",
    "it": "retard",
    "pl": "psycho",
    "vi": "scum",
    "ro": "retard idiot",
    "cs": "coon",
}
# The same the other way: entries of other lists that are ordinary in English or elsewhere. They count in documents of
# their own language alone, not where the language is unknown.
OWN_LANGUAGE_ONLY = """
    negro_di_merda kut lul tering tyfus fan_ta bicot fasz zorra zorras verga vergas perek fute muie pedale mist nul
    nula nuls nule nules stupide stupides tonto doof asco basura conne connes garce garces troia troie merde minchia
    feccia cazzo slet trut prdel prdela suki suka suko neger blatte kanake bicha hore luder luders hoer hoers idiot
    idiota debil debila eikel eikels puta putas puto putos memek porra corno cornos
    hoeren jebal kokot kokoti curve gonorrea debile ordure ordures pula pulă szar geci randi harami gandu tolol
    mongo pucko dupek capullo capulla forro frocio froci terrone terroni tapette tapettes pedal viado bouffon
    mamada mamadas sidoso pillu huora fitta fitte kyrpa hure huren rahat curva curvy chinga chingas ibne aptal jegos
"""

# Names of groups, which no list may hold: tests and the benchmark see to it.
GROUP_NAMES = """
    gay gays lesbian lesbians homosexual homosexuals bisexual queer queers trans transgender transsexual lgbt lgbtq
    muslim muslims islam islamic jew jews jewish christian christians catholic hindu sikh buddhist atheist
    black blacks white whites brown asian asians african arab arabs latino latina hispanic mexican chinese indian
    immigrant immigrants refugee refugees migrant migrants foreigner foreigners woman women girl girls man men female
    disabled deaf blind autistic wheelchair poor homeless roma gypsy gypsies aboriginal native indigenous negro
    schwul lesbisch jude juden türke türken ausländer flüchtling musulman juif arabe noir gitan gitano
    judío moro negra mujer ebreo musulmano donna judeu preto gej żyd muzułmanin еврей мусульманин цыган
"""
