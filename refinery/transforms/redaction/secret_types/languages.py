"""Words for a password in the languages of the web, and what stands between such a word and the password.

Twenty languages with the most speakers or pages and some more; as on the login pages of large sites. Each is
written as it is in a sentence; patterns ignore case.
"""

_SPACED = """
password|passwort|kennwort|zugangswort|contraseña|contrasena|clave de acceso|clave|mot de passe|motdepasse|mdp|senha
|palavra-passe|palavra passe|parola d'ordine|parola|parolă|пароль|пароля|паролем|парола|лозинка|lozinka|zaporka|zaporku
|hasło|hasłem|haslo|heslo|heslem|geslo|jelszó|jelszava|jelszo|şifre|şifresi|şifreniz|sifre|parolanız|wachtwoord
|lösenord|lösenordet|losenord|adgangskode|adgangskoden|kodeord|passord|passordet|salasana|salasanasi|parool|salasõna
|parole|slaptažodis|slaptazodis|fjalëkalimi|fjalekalimi|contrasenya|pasahitza|contrasinal|lykilorð|pasfhocal|cyfrinair
|κωδικός πρόσβασης|κωδικός|κωδικος|συνθηματικό|mật khẩu|mat khau|kata sandi|katasandi|kata laluan|sandi|nenosiri
|wagwoord|iphasiwedi|құпия сөз|құпиясөз|нууц үг|გასაღები|პაროლი|գաղտնաբառ|şifrə|parol|סיסמה|סיסמא|הסיסמה
|كلمة المرور|كلمة السر|كلمة مرور|الرقم السري|رمز عبور|گذرواژه|پسورد|پاس ورڈ|پاسورڈ|पासवर्ड|कूटशब्द|পাসওয়ার্ড|ਪਾਸਵਰਡ
|પાસવર્ડ|சங்கேதச் சொல்|கடவுச்சொல்|పాస్‌వర్డ్|ಪಾಸ್ವರ್ಡ್|പാസ്‌വേഡ്|मुखशब्द|passcode|passphrase|passwd|pwd|pass word
""".replace("\n", "")
_UNSPACED = (
    "密码|密碼|口令|パスワード|パス|暗証番号|비밀번호|비번|패스워드|암호|รหัสผ่าน|รหัสเข้าใช้|ລະຫັດຜ່ານ|ពាក្យសម្ងាត់|စကားဝှက်"
)
_IS = """
is|are|was|will be|set to|changed to|reset to|changed into|reads|equals|lautet|heißt|heisst|ist|war|es|fue|sera|será|est
|était|sera|è|era|sarà|é|foi|er|är|var|blir|on|oli|jest|to|brzmi|je|este|e|ste|az|adalah|ialah|ni|là|είναι|ήταν|это|был|будет
|є|це|هو|هي|است|ہے|है|हैं|হল|হলো|ஆகும்|ఉంది|יהיה|היא|הוא
""".replace("\n", "")
_IS_UNSPACED = "是|为|為|は|が|는|은|가|설정은|คือ|:|：|="

PASSWORD_WORDS = tuple(sorted(set(_SPACED.split("|")), key=len, reverse=True))
PASSWORD_WORDS_UNSPACED = tuple(sorted(_UNSPACED.split("|"), key=len, reverse=True))
COPULAS = tuple(sorted(set(_IS.split("|")), key=len, reverse=True))
COPULAS_UNSPACED = tuple(_IS_UNSPACED.split("|"))
