// Package signin lets people into the dashboard of `delaytask serve`: the login with an access token, sessions, and the
// guard before the pages. The pages themselves get the caller by [access.From].
//
// A session is a cookie of 32 random bytes, whose SHA-256 is a row of delay_task_session. So a copy of the database
// lets no one in. The row names the token of the login; each request asks what that token may do now.
//
// handler.go has the routes, and sessions.go finds the session of a cookie. next.go says where a login leads, secure.go
// over which connections it is taken, and limiter.go how often.
package signin
