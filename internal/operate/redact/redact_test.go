package redact

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// corpus holds texts in which $ stands for a secret, and ¤ in the wanted text for the mask.
var corpus = []struct{ text, want string }{
	// JSON.
	{`{"password":"$"}`, `{"password":"¤"}`},
	{"{ \"a\" : 1.50e+400,\n\t\"Password\" :\t\"$\" , \"a\" : 12345678901234567890 }\n",
		"{ \"a\" : 1.50e+400,\n\t\"Password\" :\t\"¤\" , \"a\" : 12345678901234567890 }\n"},
	{`[{"x":[{"dbPassword2":"$"}]},{"api_key":"$","user.passwd":"$"}]`,
		`[{"x":[{"dbPassword2":"¤"}]},{"api_key":"¤","user.passwd":"¤"}]`},
	{`{"secrets":["$",{"a":"$"}],"Credentials":{"user":"$","n":[1]},"x":1}`,
		`{"secrets":"¤","Credentials":"¤","x":1}`},
	{`{"pass\u0077ord":"$","APIKey":"$","APIKEYS":{"a":"$"},"otp":123456}`,
		`{"pass\u0077ord":"¤","APIKey":"¤","APIKEYS":"¤","otp":"¤"}`},
	{`{"access_token":"$","refreshToken":"$","csrf-token":"$","tokens":["$"],"secret_id":"$","token_hash":"$"}`,
		`{"access_token":"¤","refreshToken":"¤","csrf-token":"¤","tokens":"¤","secret_id":"¤","token_hash":"¤"}`},
	{`{"headers":{"Authorization":"Bearer $","Set-Cookie":"sid=$; Path=/","X-Api-Key":"$"}}`,
		`{"headers":{"Authorization":"¤","Set-Cookie":"¤","X-Api-Key":"¤"}}`},
	{`{"env":[{"name":"DB_PASSWORD","value":"$"},{"key":"HOME","value":"/root"},{"value":1}]}`,
		`{"env":[{"name":"DB_PASSWORD","value":"¤"},{"key":"HOME","value":"/root"},{"value":1}]}`},
	{`{"dsn":"root:$@tcp(db:3306)/app","url":"https://x:$@h/a?b=1\u0026token=$","n":"\u00e9\ud83d\ude00 pwd=$\ud800"}`,
		`{"dsn":"root:¤@tcp(db:3306)/app","url":"https://x:¤@h/a?b=1\u0026token=¤","n":"\u00e9\ud83d\ude00 pwd=¤"}`},
	{`{"body":"{\"a\":\"{\\\"password\\\":\\\"$\\\"}\",\"secret\":{\"b\":\"$\"}}"}`,
		`{"body":"{\"a\":\"{\\\"password\\\":\\\"¤\\\"}\",\"secret\":\"¤\"}"}`},
	{`"Authorization: Bearer $"`, `"Authorization: ¤"`},
	{`{"key":"-----BEGIN RSA PRIVATE KEY-----\n$\n-----END RSA PRIVATE KEY-----\n"}`, `{"key":"¤\n"}`},

	// Text.
	{`dial: password=$, token: $; api_key = "$"`, `dial: password=¤, token: ¤; api_key = "¤"`},
	{`GET https://api.example.com/v1?access_token=$&page=2&sig=$: 500`,
		`GET https://api.example.com/v1?access_token=¤&page=2&sig=¤ 500`},
	{"Access denied for user 'u'@'h' (using password: YES)", "Access denied for user 'u'@'h' (using password: YES)"},
	{"Authorization: Bearer $\nCookie: a=$; b=$\r\nHost: x", "Authorization: ¤\nCookie: ¤\r\nHost: x"},
	{"Authorization: Digest username=\"u\", response=\"$\"\nHost: x", "Authorization: ¤\nHost: x"},
	{`"Authorization: Digest username=\"u\", response=\"$\"", "Host: x"`, `"Authorization: ¤", "Host: x"`},
	{`curl -H 'Authorization: Basic $' --password $ --db-password='$' https://x`,
		`curl -H 'Authorization: ¤' --password ¤ --db-password='¤' https://x`},
	{`dial root:$@tcp(10.0.0.1:3306)/app: refused`, `dial root:¤@tcp(10.0.0.1:3306)/app: refused`},
	{`open u:$@/app; redis://:$@h:6379/0 amqp://u:p/$@h smtp u:$@mail.example.com:25`,
		`open u:¤@/app; redis://:¤@h:6379/0 amqp://u:¤@h smtp u:¤@mail.example.com:25`},
	{`map[Authorization:[Bearer $] Password:$] &{Secret:$ N:1}`, `map[Authorization:¤ Password:¤] &{Secret:¤ N:1}`},
	{`body "{\"user\":\"u\",\"password\":\"$\\\"$\"}" refused`, `body "{\"user\":\"u\",\"password\":\"¤\"}" refused`},
	{`{"user":"u","password":"$`, `{"user":"u","password":"¤`},
	{"db:\n  password: $ $ $\n  - secret: $ # $\n", "db:\n  password: ¤\n  - secret: ¤\n"},
	{`<a><db:password>$</db:password><token><![CDATA[$]]></token></a>`,
		`<a><db:password>¤</db:password><token><![CDATA[¤]]></token></a>`},
	{`{:password=>"$", 'token': '$'} params[password]=$ (*T)(Password: (string) (len=3) "$")`,
		`{:password=>"¤", 'token': '¤'} params[password]=¤ (*T)(Password: (string) (len=3) "¤")`},
	{`got Bearer $ and basic dXNlcjpTRUNSRVQ= of dt_$`, `got Bearer ¤ and basic ¤ of ¤`},
	{`jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.$. x`, `jwt ¤. x`},
	{"x -----BEGIN PRIVATE KEY-----\n$\n$", "x ¤"},
	{"token='\npassword='$'", "token='¤'¤'"},
}

// canary is like a token. No other text holds it.
const canary = "Zq3canaryXw9Zq3canaryXw9Zq3canaryXw9Zq3canXw"

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	for _, c := range corpus {
		want := strings.ReplaceAll(c.want, "¤", Mask)
		if got := Text("t", secretive(c.text)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, want)
		}
	}
}

func secretive(text string) string { return strings.ReplaceAll(text, "$", canary) }

func TestHarmlessTextsStay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"token_count":3,"max_tokens":100,"tokens":12,"next_page_token":"abc","nextToken":"a","pageToken":"x"}`,
		`{"password":null,"token":"","secret":true,"token_type":"Bearer","token_url":"https://x/token"}`,
		`{"password_policy":"strict","cookie_consent":"yes","author":"x","public_key":"x","primary_key":1,"key":"k"}`,
		`{"author":"ann","passenger":"bob","boarding_pass":"A7","compass":"N","secretary":"eve","tokenizer":"bpe"}`,
		`{"password":"[delaytask-redacted]","token":"`, "", " ", "12345", `"x"`, "{", `{"a":`, "\xff\xfe",
		"unexpected token } in JSON at position 3", "invalid token: expired", "Token::Expired", "password is required",
		"bearer token is missing", "Basic authentication failed", `Bearer realm="delaytask"`, "mailto:bob@example.com",
		"https://example.com:8080/@user", "dial tcp 10.0.0.1:3306: connection refused", "secret://vault/path",
		"dt_created_at", "eyJ.eyJ.x", "GET /v1/tasks?tag=a&key=b", "-----BEGIN CERTIFICATE-----\nMII\n",
		"password=[delaytask-redacted]; https://u:[delaytask-redacted]@h/",
	} {
		if got := Text("t", text); got != text {
			t.Errorf("%s\nbecomes %s", text, got)
		}
	}
}

func TestHeadersAreMasked(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"Authorization": "x y", "x-api-key": "1", "trace": "a", "callback": "https://u:p@h/"}
	got := new(Redactor).Headers("t", headers)
	if got["Authorization"] != Mask || got["x-api-key"] != Mask || got["trace"] != "a" ||
		got["callback"] != "https://u:"+Mask+"@h/" || headers["x-api-key"] != "1" {
		t.Errorf("got %v from %v", got, headers)
	}
}

func TestNamesCanBeAdded(t *testing.T) {
	t.Parallel()
	r, err := New("card_number", "IBAN", "密码")
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"cardNumber":"1","customer-card-number":2,"cardnumber":3,"iban":"DE","card":"visa","密码":"x"}`
	want := strings.ReplaceAll(`{"cardNumber":"M","customer-card-number":"M","cardnumber":"M","iban":"M",`+
		`"card":"visa","密码":"M"}`, `"M"`, `"`+Mask+`"`)
	if got := r.Text("t", text); got != want {
		t.Errorf("got %s", got)
	}
	for _, name := range []string{"", "--", "\xff", strings.Repeat("x", 257)} {
		if _, err := New(name); err == nil {
			t.Errorf("the name %.10q is taken", name)
		}
	}
	none, headers := (*Redactor)(nil), map[string]string{"token": "x"}
	if none.Text("t", text) != text || none.Headers("t", headers)["token"] != "x" {
		t.Error("a nil Redactor masks")
	}
}

// TestNoBeginningOfASecretIsShown cuts each text at each byte, as lists do.
func TestNoBeginningOfASecretIsShown(t *testing.T) {
	t.Parallel()
	for _, c := range corpus {
		text := secretive(c.text)
		for n := range len(text) {
			shown := Text("t", upTo(text, n)+Cut)
			if strings.Contains(shown, canary[:2]) {
				t.Errorf("%q\ncut    %q\nshows  %q", text, text[:n], shown)
			}
			if again := Text("t", shown); again != shown {
				t.Errorf("%q\nis masked as  %q\nand that as    %q", text[:n]+Cut, shown, again)
			}
			shown = new(Redactor).Beginning("t", text, n)
			if strings.Contains(shown, canary[:2]) || len(shown) > n+len(Cut) {
				t.Errorf("%q\nbegins with %q", text, shown)
			}
		}
	}
}

func TestABeginningIsMaskedAsTheWholeIs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for _, c := range []struct{ text, want string }{
		{"dial db:3306: refused", "dial db:3306: refused"},
		{`{"a":"b","password":"` + long + `"}`, `{"a":"b","password":"[delayt…`},
		{`{"password":"x","b":"` + long, `{"password":"[delaytask-reda…`},
		{"https://example.com:8080/é" + long, "https://example.com:8080/éx…"},
		{"u:" + long + "@tcp(db:3306)/app", "u:[delaytask-redacted]…"},
		{"éééééééééééééééééééé", "éééééééééééééé…"},
	} {
		if got := new(Redactor).Beginning("t", c.text, 28); got != c.want {
			t.Errorf("%.40q begins with %q, want %q", c.text, got, c.want)
		}
	}
	if got := (*Redactor)(nil).Beginning("t", "password=x", 10); got != "password=x" {
		t.Errorf("without a mask: %q", got)
	}
}

// FuzzText takes any text, and puts secrets of the corpus behind it.
func FuzzText(f *testing.F) {
	for i, c := range corpus {
		f.Add(c.text, uint(i))
	}
	f.Add(`{"a":"\ud800\udc00","token":[[[{}]]]}`, uint(0))
	f.Fuzz(func(t *testing.T, text string, n uint) {
		got := Text("t", text)
		if again := Text("t", got); again != got {
			t.Errorf("%q\nis masked as  %q\nand that as    %q", text, got, again)
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%q is no JSON, of %q", got, text)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q is no UTF-8, of %q", got, text)
		}
		secret := secretive(corpus[n%uint(len(corpus))].text)
		all := []string{quotedIn(text, secret)}
		if json.Valid([]byte(secret)) {
			all = append(all, `{"a":`+quotedIn(text)+`,"b":`+secret+`}`)
		} else {
			all = append(all, text+"\n"+secret)
		}
		for _, text := range all {
			if got := Text("t", text); strings.Contains(got, canary) {
				t.Errorf("%q\nshows %q", text, got)
			}
		}
	})
}

// FuzzBeginning cuts secrets of the corpus that stand behind any line, and in addresses.
func FuzzBeginning(f *testing.F) {
	for i, c := range corpus {
		f.Add(c.text, uint(i), uint(len(c.text)/2))
	}
	f.Fuzz(func(t *testing.T, line string, n, at uint) {
		secret := secretive(corpus[n%uint(len(corpus))].text)
		cut := secret[:at%uint(len(secret)+1)]
		text := line + "\n" + cut
		if json.Valid([]byte(secret)) {
			text = `{"a":` + quotedIn(line) + `,"b":` + cut
		}
		if got := Text("t", text+Cut); strings.Contains(got, canary[:2]) && !strings.Contains(line, canary[:2]) {
			t.Errorf("%q\nshows %q", text, got)
		}
		address := "https://u:" + canary + "@h/a/" + canary + "/b?c=" + canary + "&" + url.QueryEscape(line)
		if got := Address(address, Mask); strings.Contains(got, canary) {
			t.Errorf("%q is shown as %q", address, got)
		}
	})
}

// quotedIn puts texts into JSON.
func quotedIn(name string, texts ...string) string {
	encoded, _ := json.Marshal(map[string][]string{name: append(texts, name)})
	return string(encoded)
}
