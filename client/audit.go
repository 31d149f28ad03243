package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Audit returns what people have changed, the newest first. It needs the verb audit. A token for some tags sees entries
// of these tags.
//
// It returns [delaytask.ErrInvalidOption] for a negative Before or Limit.
func (c *Client) Audit(ctx context.Context, f report.AuditFilter) (report.AuditPage, error) {
	if err := c.enter(ctx); err != nil {
		return report.AuditPage{}, err
	}
	if f.Before < 0 || f.Limit < 0 {
		return report.AuditPage{}, fmt.Errorf("%w: before is %d and limit is %d; want none below 0",
			delaytask.ErrInvalidOption, f.Before, f.Limit)
	}
	q := url.Values{}
	for name, value := range map[string]string{"who": f.Who, "action": f.Action, "tag": f.Tag} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, n := range map[string]int64{"before": f.Before, "limit": int64(f.Limit)} {
		if n != 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	var answer wire.AuditPage
	r := &httpCall{
		method: http.MethodGet, path: "/v1/audit?" + q.Encode(), into: &answer, limit: listAnswer, again: true,
	}
	if _, err := c.call(ctx, r); err != nil {
		return report.AuditPage{}, fmt.Errorf("read the audit log: %w", err)
	}
	return answer.To(), nil
}
