package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/wire"
)

// taskBodyOutput is a body alone. A browser that opens the address must not guess what it is: a caller that may save
// tasks could run a script with the rights of a reader.
type taskBodyOutput struct {
	Type     string `header:"Content-Type"`
	Download string `header:"Content-Disposition" doc:"A browser stores the body and does not show it"`
	Sniff    string `header:"X-Content-Type-Options" doc:"Always nosniff"`
	Policy   string `header:"Content-Security-Policy" doc:"Nothing of it runs or loads anything"`
	Cache    string `header:"Cache-Control" doc:"Always no-store"`
	Redacted bool   `header:"Delaytask-Redacted" doc:"Whether a secret of the body is masked"`
	Body     []byte
}

func (a *API) taskBodyOperations() {
	const bytes = "The bytes of the body and nothing else. It needs the verb bodies."
	byID := a.operation(http.MethodGet, taskPath+"/body", "getTaskBody", "Show the body of a task", bytes, groupTasks)
	byID.Middlewares = append(byID.Middlewares, a.paged)
	huma.Register(a.spec, byID,
		func(ctx context.Context, in *idRaw) (*taskBodyOutput, error) {
			return a.taskBody(ctx, &in.IDInput, in.RawInput)
		})
	byKey := a.operation(http.MethodGet, keyPath+"/body", "getTaskBodyByKey",
		"Show the body of the unfinished task with a key", bytes, groupTasks)
	byKey.Middlewares = byID.Middlewares
	huma.Register(a.spec, byKey,
		func(ctx context.Context, in *keyRaw) (*taskBodyOutput, error) {
			return a.taskBody(ctx, &in.KeyInput, in.RawInput)
		})
}

func (a *API) taskBody(ctx context.Context, in named, raw RawInput) (*taskBodyOutput, error) {
	ref, err := in.ref()
	if err != nil {
		return nil, a.problem(err)
	}
	room := pageRoomOf(ctx)
	if err := room.enterTask(ctx); err != nil {
		return nil, err
	}
	id, body, redacted, err := a.view(ctx, raw).Body(ctx, ref)
	if err != nil {
		return nil, a.problem(err)
	}
	room.keep(2*int64(len(body)) + taskRoom)
	return &taskBodyOutput{
		Type:     mediaBytes,
		Download: fmt.Sprintf(`attachment; filename="task-%s.body"`, wire.ID(id)),
		Sniff:    "nosniff", Policy: "default-src 'none'; sandbox", Cache: "no-store",
		Redacted: redacted, Body: body,
	}, nil
}
