package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/remit-dev/remit/agent"
)

// grantsPage lists what is granted beyond one call.
type grantsPage struct {
	Valid, Ended []agent.GrantInfo
	More         int // ended grants that the page leaves out
}

const endedGrants = 100 // on the page

// spans are the times for which a form can remember an approval.
var spans = map[string]time.Duration{"10m": 10 * time.Minute, "1h": time.Hour, "24h": 24 * time.Hour}

func (c *Console) grants(r *http.Request) (string, page, error) {
	all, err := c.Runtime.Grants(r.Context())
	if err != nil {
		return "", page{}, err
	}
	var d grantsPage
	for _, g := range slices.Backward(all) {
		switch {
		case g.State == "standing":
			d.Valid = append(d.Valid, g)
		case len(d.Ended) < endedGrants:
			d.Ended = append(d.Ended, g)
		default:
			d.More++
		}
	}
	return "grants", page{Title: "Grants", Place: "grants", Data: d}, nil
}

// revoke takes a grant away. That needs no more than the form: it lets nothing
// through.
func (c *Console) revoke(r *http.Request) (string, error) {
	why := r.PostForm.Get("why")
	if len(why) > maxWhy {
		return "", &problem{http.StatusBadRequest, "The reason is too long", "It must be at most 2,000 bytes."}
	}
	return "/grants", c.Runtime.Revoke(context.WithoutCancel(r.Context()), idOf(r.PostForm), c.By, why)
}
