package server

import (
	"fmt"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestTheSettingSaysWhichChangesAreRecorded(t *testing.T) {
	for setting, want := range map[string]string{
		"all": "tag.pause task.cancel ", "operate": "tag.pause ", "off": "",
	} {
		c := sqlite(t)
		c.Server.Audit = setting
		r := serve(t, c)
		r.Want(200, "", "DELETE", fmt.Sprint("/v1/tasks/", r.Save(`{"tag":"t","delay":"1h"}`).ID), "")
		r.Want(204, "", "POST", "/v1/tags/t/pause", "")
		got := ""
		for _, e := range servertest.Ask[wire.AuditPage](&r.Client, 200, "GET", "/v1/audit", "").Entries {
			got += e.Action + " "
		}
		if got != want {
			t.Errorf("%s: recorded are %q, want %q", setting, got, want)
		}
	}
}
