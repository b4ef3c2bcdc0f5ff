package login

import (
	"context"
	"net/http"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// Private exports private for tests, because tests cannot reach a host name
// outside this machine.
var Private = private

// Late is for tests: a login that is over is asked once more, as by a message that its connection still had to send.
func (s Store) Late(ctx context.Context, server config.Server, show func(page string)) (first, late error) {
	back, err := listen(0)
	if err != nil {
		return err, nil
	}
	defer back.close()
	f, err := s.flow(server, back, show)
	if err != nil {
		return err, nil
	}
	first = f.run(ctx)
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, server.URL, http.NoBody)
	if err != nil {
		return first, err
	}
	return first, f.Authorize(req.Context(), req, &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody})
}
