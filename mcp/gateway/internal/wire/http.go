package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// httpTransport sends requests to a server by URL, with the headers of the
// configuration and to no other host. It reads the responses along.
type httpTransport struct {
	base    *http.Transport
	refuse  func(why error) error // stores why it sends nothing, and returns it
	home    string                // origin of the server
	headers map[string]string
	flights *InFlightCalls
	whole   context.Context //nolint:containedctx // of the connection; its end ends the requests
	flood   func(why error) // ends a connection that carries only messages that respond to nothing
}

// RoundTrip sends one request.
func (w *httpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if at := origin(r.URL); at != w.home { // a server of the legacy transport names the URL for messages itself
		return nil, w.refuse(fmt.Errorf("the server at %s wants messages sent to %s, which is not where it is", w.home, at))
	}
	of := r.Context()
	r, release, err := w.limitedReader(r)
	if err != nil {
		return nil, err
	}
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	resp, err := w.base.RoundTrip(r)
	if w.whole.Err() != nil {
		w.base.CloseIdleConnections() // the request can have opened a connection after the end
	}
	if err != nil {
		release()
		return nil, err
	}
	b := &bodyReader{ReadCloser: resp.Body, flights: w.flights, whole: w.whole, flood: w.flood, of: of, release: release, slot: responseSlotOf(of)}
	b.events = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	resp.Body = b
	return resp, nil
}

// origin returns the origin of a URL in one normal form.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// limitedReader returns a request that ends with its connection, until the
// caller calls release. After that end, only the request that notifies the
// server can begin, whose time the SDK bounds.
func (w *httpTransport) limitedReader(r *http.Request) (_ *http.Request, release func(), err error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := func() bool { return true }
	if r.Method != http.MethodDelete {
		if err := context.Cause(w.whole); err != nil {
			cancel(nil)
			return nil, nil, err
		}
		stop = context.AfterFunc(w.whole, func() { cancel(context.Cause(w.whole)) })
	}
	return r.Clone(ctx), func() {
		stop()
		cancel(nil)
	}, nil
}

// redirected rejects redirects: headers and tokens are for the configured URL
// alone.
func redirected(*http.Request, []*http.Request) error {
	return errors.New("the server redirects, which would take its headers elsewhere; configure the URL that it redirects to")
}
