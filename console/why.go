package console

import (
	"context"
	"net/http"
	"time"
)

// explainTime limits an explanation: it decides again as the session stood.
const explainTime = 10 * time.Second

type whyPage struct {
	Call, Tool, Status string
	Text               string
	Cut                bool
	Command            string
}

// why explains the decision about a call, and says what lets it through.
func (c *Console) why(r *http.Request) (string, page, error) {
	ctx, stop := context.WithTimeout(r.Context(), explainTime)
	defer stop()
	id := idOf(r.URL.Query())
	_, call, err := c.loadCall(ctx, id)
	if err != nil {
		return "", page{}, err
	}
	line := c.lineOf(call)
	d := whyPage{Call: id, Tool: line.Tool, Status: line.Status}
	if c.Hint != nil {
		d.Command = c.Hint("policy", "explain", id)
	}
	switch {
	case c.Explain == nil:
		return "", page{}, &problem{http.StatusNotFound, "This console has no policy that explains calls", ""}
	case len(c.sensitive(line.Tool)) > 0: // an explanation repeats arguments
		d.Text = "The tool has sensitive arguments, which an explanation can repeat."
	default:
		text, err := c.Explain(ctx, id)
		if err != nil {
			text = err.Error()
		}
		var cut callPage
		d.Text, d.Cut = cut.cut(text), cut.Cut
	}
	return "why", page{Title: "Why, and what lets it through", Place: "timeline", Data: d}, nil
}
