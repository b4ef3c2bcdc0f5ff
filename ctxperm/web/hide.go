package web

import (
	"errors"
	"net/http"

	"github.com/remit-dev/remit/internal/callstate"
)

// hide takes the values of the client's secrets out of a text. A call takes out those
// of all drivers; an undo has no call.
func (c *Client) hide(text string) string {
	if c.opts.Secrets == nil {
		return text
	}
	return callstate.SecretSets{c.opts.Secrets.SecretValues(callstate.NewKey())}.Scrub(text)
}

// hideHeader takes the values out of a header, whose versions and media types are
// written down. One that is sent back would not be what it was: it is none.
func (c *Client) hideHeader(h http.Header) http.Header {
	for name, values := range h {
		for i, value := range values {
			if values[i] = c.hide(value); values[i] != value && (name == "Etag" || name == "Content-Type") {
				delete(h, name)
				break
			}
		}
	}
	return h
}

// tellable refuses a goal that a service named by the value of a secret: its URL is
// written down.
func (c *Client) tellable(g compensationTarget, err error) (compensationTarget, error) {
	if text := g.item.String() + " " + g.back.String(); err == nil && c.hide(text) != text {
		return compensationTarget{}, errors.New("what the service names holds the value of a secret")
	}
	return g, err
}
