"""The word stock of the demo crawl for languages that its recipe drops: whole sentences, filled with numbers."""

from demo_text.stock import lines

# language -> sentences
OTHERS: dict[str, list[str]] = {
    "it": lines(
        """
        Il vecchio mulino del paese si trova a {n} chilometri dalla stazione ed è aperto tutte le domeniche.
        Nel {year} un gruppo di volontari ha riparato il tetto con il legno dei boschi vicini.
        Ogni anno arrivano circa {count} visitatori, soprattutto in primavera e in autunno.
        La farina viene ancora macinata come una volta, lentamente e senza fretta.
        I bambini della scuola hanno disegnato una mappa con tutti i sentieri della valle.
        Secondo i documenti dell'archivio, la prima pietra fu posata nel {year}.
        Chi vuole assaggiare il pane deve svegliarsi molto presto, perché finisce sempre prima delle otto.
        Non è facile trovare {n} persone che conoscano ancora questo mestiere.
        Dopo la grande tempesta del {year} il fiume ha cambiato il suo corso.
        Quando il tempo è bello, si può vedere il mare dalla torre della chiesa.
        """
    ),
    "pt": lines(
        """
        O antigo moinho da aldeia fica a {n} quilómetros da estação e abre todos os domingos.
        Em {year}, um grupo de voluntários reparou o telhado com madeira da floresta vizinha.
        Todos os anos chegam cerca de {count} visitantes, sobretudo na primavera e no outono.
        A farinha ainda é moída como antigamente, devagar e sem pressa nenhuma.
        As crianças da escola desenharam um mapa com todos os caminhos do vale.
        Segundo os documentos do arquivo, a primeira pedra foi colocada em {year}.
        Quem quiser provar o pão tem de acordar muito cedo, porque acaba sempre antes das oito.
        Não é fácil encontrar {n} pessoas que ainda conheçam este ofício.
        Depois da grande tempestade de {year}, o rio mudou de lugar.
        Quando o tempo está bom, vê-se o mar do alto da torre da igreja.
        """
    ),
    "nl": lines(
        """
        De oude molen van het dorp ligt op {n} kilometer van het station en is elke zondag open.
        In {year} heeft een groep vrijwilligers het dak hersteld met hout uit het bos.
        Elk jaar komen er ongeveer {count} bezoekers, vooral in het voorjaar en in de herfst.
        Het meel wordt nog steeds gemalen zoals vroeger, langzaam en zonder haast.
        De kinderen van de school hebben een kaart getekend met alle paden van de vallei.
        Volgens de stukken in het archief werd de eerste steen gelegd in {year}.
        Wie het brood wil proeven, moet heel vroeg opstaan, want om acht uur is alles op.
        Het is niet gemakkelijk om {n} mensen te vinden die dit vak nog kennen.
        Na de grote storm van {year} heeft de rivier haar loop veranderd.
        Bij mooi weer kun je vanaf de toren van de kerk de zee zien.
        """
    ),
    "ru": lines(
        """
        Старая мельница стоит в {n} километрах от станции и открыта каждое воскресенье.
        В {year} году добровольцы починили крышу деревом из соседнего леса.
        Каждый год сюда приезжает около {count} гостей, чаще всего весной и осенью.
        Муку здесь по-прежнему мелют как раньше, медленно и без спешки.
        Дети из школы нарисовали карту со всеми тропинками долины.
        По документам архива первый камень был положен в {year} году.
        Кто хочет попробовать хлеб, должен встать очень рано, потому что он быстро кончается.
        Нелегко найти {n} человек, которые ещё знают это ремесло.
        После большой бури {year} года река изменила своё русло.
        В хорошую погоду с колокольни видно море.
        """
    ),
    "zh": lines(
        """
        村里的老磨坊离车站有{n}公里，每个星期天都开放。
        {year}年，一群志愿者用附近森林的木头修好了屋顶。
        每年大约有{count}名游客来到这里，春天和秋天人最多。
        面粉还是像从前一样慢慢地磨出来的。
        学校的孩子们画了一张地图，上面有山谷里所有的小路。
        根据档案里的记录，第一块石头是在{year}年放下的。
        想尝面包的人要起得很早，因为八点以前就卖完了。
        现在很难找到{n}个还懂这门手艺的人。
        {year}年的大风暴以后，河流改变了方向。
        天气好的时候，从教堂的塔上可以看见大海。
        """
    ),
    "ja": lines(
        """
        村の古い水車小屋は駅から{n}キロのところにあり、毎週日曜日に開いています。
        {year}年に、ボランティアの人たちが近くの森の木で屋根を直しました。
        毎年およそ{count}人の観光客が訪れ、特に春と秋に多くなります。
        小麦粉は今でも昔と同じように、ゆっくりとひかれています。
        学校の子どもたちは谷のすべての小道をのせた地図をかきました。
        記録によると、最初の石が置かれたのは{year}年のことです。
        パンを食べたい人は、とても早く起きなければなりません。
        この仕事をまだ知っている人を{n}人見つけるのは簡単ではありません。
        {year}年の大きな嵐のあとで、川の流れが変わりました。
        天気のよい日には、教会の塔から海が見えます。
        """
    ),
}
