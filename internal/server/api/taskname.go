package api

import (
	"net/http"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	taskPath = "/v1/tasks/{id}"
	keyPath  = "/v1/tags/{tag}/keys/{key}"
)

// IDInput names a task by its id, KeyInput an unfinished one by tag and key. The framework reads parameters from
// exported fields and embedded types alone.
type IDInput struct {
	ID string `path:"id" doc:"Id of the task"`
}

type KeyInput struct {
	Tag string `path:"tag" doc:"A slash in it is written %2F; . and .. are written .~ and ..~"`
	Key string `path:"key" doc:"Key of an unfinished task of the tag; . and .. are written .~ and ..~"`
	App string `query:"app" doc:"The application that the key belongs to; without it, tasks of no application"`
}

// named is common to both.
type named interface {
	ref() (delaytask.Ref, error)
}

func (in *IDInput) ref() (delaytask.Ref, error) {
	id, err := wire.ParseID(in.ID)
	if err != nil {
		return delaytask.Ref{}, invalidID(err)
	}
	return delaytask.ID(int64(id)), nil
}

func (in *KeyInput) ref() (delaytask.Ref, error) {
	return delaytask.Key(in.Tag, in.Key).InApp(in.App), checkApp(in.App)
}

func checkApp(app string) error {
	if app == "" || delaytask.ValidTag(app) {
		return nil
	}
	return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidParameter,
		"app: no task or receiver can have it; an app has 1 to 128 characters of A–Z a–z 0–9 . _ - : /")
}

// idRaw and keyRaw name a task to show.
type (
	idRaw struct {
		IDInput
		RawInput
	}
	keyRaw struct {
		KeyInput
		RawInput
	}
)
