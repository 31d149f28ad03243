// Minimal is a program that keeps its tasks on MySQL and uses nothing else. A test counts what it links.
package main

import (
	"context"
	"log"

	"github.com/delaytask/delaytask/scheduler"
)

func main() {
	tasks, err := scheduler.Open(context.Background(), "root@tcp(127.0.0.1:3306)/test", scheduler.Config{Migrate: true})
	if err != nil {
		log.Fatal(err)
	}
	log.Println(tasks.Start(context.Background()))
}
