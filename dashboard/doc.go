// Package dashboard serves web pages that show the tasks of a scheduler and let people change them.
//
// It is an [net/http.Handler] for any mux and any path prefix: all its links are relative. The program that mounts it
// says who a request comes from, with its own login:
//
//	pages, err := dashboard.New(scheduler, dashboard.Options{
//		Who: func(r *http.Request) (dashboard.User, error) {
//			user, ok := session(r)
//			if !ok {
//				return dashboard.User{}, dashboard.ErrSignIn
//			}
//			return dashboard.User{Name: user, Role: dashboard.Operator, Tags: []string{"order.*"}}, nil
//		},
//		SignIn: "/login",
//	})
//	mux.Handle("/tasks/", http.StripPrefix("/tasks", pages))
//
// The program delaytask serves it at /ui/. A program that does not import this package does not contain it.
//
// Pages are plain HTML and work without script. Script adds refreshes, charts and keys. All reads of a handler together
// use two connections at most, and at most about five statements a second for refreshes, however many people look.
package dashboard
