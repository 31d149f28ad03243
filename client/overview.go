package client

import (
	"context"
	"strconv"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Overview returns what needs attention now, and how every tag stands that the token may observe. The service reads at
// most every 5 s for all its callers, and lists up to 10,000 tags and findings. While its database is away it returns
// the last reading, with its age and the class of the error.
func (c *Client) Overview(ctx context.Context) (report.Overview, error) {
	var answer wire.Overview
	err := c.read(ctx, "/v1/overview?limit="+strconv.Itoa(tagsListed), "read the overview", &answer)
	return answer.To(), err
}
