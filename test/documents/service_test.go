package documents

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

func TestReceiverIsCalledWithItsTasks(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	defer s.stop()
	s.serve("delaytask serve")
	mine := httptest.NewServer(http.DefaultServeMux)
	defer mine.Close()
	ctx, service, address, token, secret := t.Context(), "http://"+s.address, mine.URL+"/hooks", "", exampleSecret
	check := func(err error) {
		t.Helper()
		servertest.OK(t, err)
	}
	called := make(chan int, 1)
	closeOrder := func(_ context.Context, _ *delaytask.Task, o order) error {
		called <- o.Number
		return nil
	}

	tasks, err := client.New(service, client.WithAccessToken(token)) // http://127.0.0.1:8080; verbs: register, work
	check(err)
	receiver, err := tasks.Receiver("shop", address, client.ReceiverSecret(secret)) // https://shop.example.com/hooks
	check(err)
	check(receiver.Register("order.close", processor.Typed(closeOrder)))
	http.Handle("/hooks", receiver) // serve first, then
	check(receiver.Start(ctx))
	defer receiver.Stop(ctx)

	id, err := tasks.SaveDelayTask(ctx, "order.close", order{Number: 42}, time.Millisecond)
	check(err)
	if number := servertest.Receive(t, called, "the receiver is called"); number != 42 {
		t.Errorf("it was called with order %d", number)
	}
	task, err := tasks.Wait(ctx, id)
	check(err)
	if task.Status != delaytask.Completed {
		t.Errorf("the task is %s", task.Status)
	}
}
