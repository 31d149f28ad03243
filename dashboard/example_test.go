package dashboard_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

// mount adds the dashboard to a program that has a login of its own.
func mount(mux *http.ServeMux, tasks *scheduler.Scheduler, login func(*http.Request) (name string, known bool)) error {
	pages, err := dashboard.New(tasks, dashboard.Options{
		Who: func(r *http.Request) (dashboard.User, error) {
			name, known := login(r)
			if !known {
				return dashboard.User{}, dashboard.ErrSignIn
			}
			return dashboard.User{Name: name, Role: dashboard.Operator, Tags: []string{"order.*", "mail.send"}}, nil
		},
		SignIn: "/login",
	})
	if err != nil {
		return err
	}
	mux.Handle("/admin/tasks/", http.StripPrefix("/admin/tasks", pages))
	return nil
}

// The pages stand below a path of a program, behind its login.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "delaytask")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tasks, err := scheduler.Open(ctx, "sqlite:"+filepath.Join(dir, "tasks.db"), scheduler.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Stop(ctx)

	mux := http.NewServeMux()
	login := func(r *http.Request) (string, bool) {
		name, _, known := r.BasicAuth()
		return name, known
	}
	if err := mount(mux, tasks, login); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"", "ann"} {
		r := httptest.NewRequest(http.MethodGet, "/admin/tasks/tags", nil)
		if name != "" {
			r.SetBasicAuth(name, "secret")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Location"))
	}
	// Output:
	// 303 /login?next=tags
	// 200
}
