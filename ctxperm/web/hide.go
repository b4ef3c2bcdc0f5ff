package web

import (
	"errors"
	"net/http"

	"github.com/remit-dev/remit/internal/callstate"
)

// hide removes the values of the client's secrets from a text. A call removes
// those of all drivers; a revert has no call.
func (c *Client) hide(text string) string {
	if c.opts.Secrets == nil {
		return text
	}
	return callstate.SecretSets{secretInternals.Values(c.opts.Secrets)}.Scrub(text)
}

// hideHeader removes the values from a header. It drops an ETag or a media type
// that contains one: these are recorded, and a changed one has no meaning.
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

// checkRecordable refuses a target whose URL contains a secret value, because the URL
// is recorded.
func (c *Client) checkRecordable(g compensationTarget, err error) (compensationTarget, error) {
	if text := g.item.String() + " " + g.back.String(); err == nil && c.hide(text) != text {
		return compensationTarget{}, errors.New("what the service names holds the value of a secret")
	}
	return g, err
}
