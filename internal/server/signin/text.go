package signin

import (
	"net/http"

	"github.com/delaytask/delaytask/internal/server/browser"
	"github.com/delaytask/delaytask/internal/wire"
)

// texts are the sentences of the login page in one language.
type texts struct {
	Lang string

	SignIn, Token, Make, Again                     string
	Wrong, TooMany, Insecure, Instead, Unavailable string
	Unstored, NotSignedOut, NotAForm, CrossOrigin  string
	WrongMethod                                    string
	SessionOver                                    string

	// Refused has refusals by their codes. Those that are not here come in the English of the API.
	Refused map[string]string
}

var english = texts{
	Lang:   "en",
	SignIn: "Sign in", Token: "Access token", Make: "In a shell of the service, this makes one:",
	Again:   "Sign in again",
	Wrong:   "The token is unknown, was revoked, or has expired.",
	TooMany: "This token is wrong, and there were too many wrong ones within a minute. Try another one in %d seconds.",
	Insecure: "This page came over plain HTTP. Others could read a token here, and browsers keep no session. " +
		"Set server.tls.cert and server.tls.key, or server.public_url where a proxy has the certificate. Or open the " +
		"page on the machine of the service, by a loopback address.",
	Instead:      "Sign in there:",
	Unavailable:  "The database does not answer. Try again in a moment.",
	Unstored:     "The session cannot be stored.",
	WrongMethod:  "This address does not take such a request. Open the login, or use its form.",
	NotSignedOut: "The session could not be deleted: the database does not answer. It ends by itself.",
	NotAForm:     "This is not the form of this page. Open the page again.",
	CrossOrigin: "The browser does not say that this request comes from the dashboard itself. A proxy before the " +
		"service must pass the header Host on unchanged.",
	SessionOver: "You are not signed in, or the session is over.",
}

var chinese = texts{
	Lang:   "zh-CN",
	SignIn: "登录", Token: "访问令牌", Make: "在服务所在机器的 shell 里这样创建：", Again: "重新登录",
	Wrong:   "令牌不存在、已吊销或已过期。",
	TooMany: "此令牌不对，且一分钟内不对的令牌过多。请在 %d 秒后重试。",
	Insecure: "本页经由明文 HTTP 打开：令牌会被他人读到，浏览器也不保存会话。" +
		"请设置 server.tls.cert 和 server.tls.key；证书在代理上时，设置 server.public_url。" +
		"也可以在服务所在的机器上用回环地址打开本页。",
	Instead:      "请在这里登录：",
	Unavailable:  "数据库没有应答。请稍后重试。",
	Unstored:     "无法保存会话。",
	WrongMethod:  "此地址不接受这种请求。请打开登录页，或使用其中的表单。",
	NotSignedOut: "数据库没有应答，会话未能删除。它会到时自动结束。",
	NotAForm:     "收到的不是本页的表单。请重新打开本页。",
	CrossOrigin:  "浏览器没有表明这个请求来自控制台本身。服务前面的代理必须原样传递 Host 请求头。",
	SessionOver:  "尚未登录，或会话已结束。",
	Refused: map[string]string{
		wire.CodeInternal:      "发生了意外错误，原因见服务日志。",
		wire.CodeMisdirected:   "本服务没有这个主机名。请用回环地址访问，或把该名称加到 server.hosts。",
		wire.CodeStopping:      "服务正在停止，请稍后重试。",
		wire.CodeUnavailable:   "暂时无法检查访问令牌，请稍后重试。",
		wire.CodeUnauthorized:  "访问令牌不存在、已吊销、已过期，或 Authorization 请求头的格式不对。请改用有效的访问令牌。",
		wire.CodeInvalidHeader: "Authorization 请求头只能有一个。请去掉多余的。",
	},
}

// textsFor returns the sentences in the language that the browser prefers.
func textsFor(r *http.Request) texts {
	if browser.Language(r.Header.Get("Accept-Language"), "en", "zh") == "zh" {
		return chinese
	}
	return english
}
