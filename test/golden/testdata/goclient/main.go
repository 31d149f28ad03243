// A client made by oapi-codegen: it saves a task, pops it and finishes it.
package main

import (
	"context"
	"log"
	"os"
)

func main() {
	ctx := context.Background()
	client, err := NewClientWithResponses(os.Args[1])
	check(err)
	var delay Save_Delay
	check(delay.FromSaveDelay0("50ms"))
	task := Save{Tag: "mail.send", Body: map[string]int{"n": 1}, Delay: &delay}
	saved, err := client.SaveTaskWithResponse(ctx, nil, task)
	check(err)
	popped, err := client.PopWithResponse(ctx, "mail.send", &PopParams{Wait: new("20s")})
	check(err)
	got := popped.JSON200.Tasks[0]
	finished, err := client.FinishWithResponse(ctx, got.Id, Finish{Token: got.Token})
	check(err)

	if got.Id != saved.JSON201.Id || finished.StatusCode() != 204 {
		log.Fatalf("saved %s, popped %+v, finished %s", saved.Body, got, finished.Status())
	}
	bad, err := client.SaveTaskWithResponse(ctx, nil, Save{Tag: "?"})
	check(err)
	if p := bad.ApplicationproblemJSON4XX; p == nil || p.Code != "invalid_tag" {
		log.Fatalf("a bad tag: %s", bad.Body)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
