package mcp

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// ending bounds how long running calls can continue when the server ends.
const ending = 15 * time.Second

// Serve serves the requests of a listener, at the path /mcp, until the context
// ends. Running calls then get some time to end; streams end at once. Serve
// closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener, opts HTTPOptions) error {
	handler, err := s.Handler(opts)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	opts = opts.withDefaults()
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: opts.ReadTimeout, ReadTimeout: opts.ReadTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog:    log.New(io.Discard, "", 0), // broken connections; the server can do nothing about them
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	err = s.end(context.WithoutCancel(ctx), srv)
	if gone := <-failed; !errors.Is(gone, http.ErrServerClosed) {
		err = errors.Join(err, gone)
	}
	return err
}

// end waits until requests have their responses, and then ends the streams,
// which have no end of their own.
func (s *Server) end(ctx context.Context, srv *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, ending)
	defer cancel()
	down := make(chan error, 1)
	go func() { down <- srv.Shutdown(ctx) }() // it accepts no more connections
	select {
	case <-s.traffic.quiet():
	case <-ctx.Done():
	}
	s.runs.end(ctx, nil)
	parted := make(chan struct{})
	go func() {
		defer close(parted)
		s.disconnect()
	}()
	select {
	case <-parted:
	case <-ctx.Done():
	}
	if err := <-down; !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return srv.Close()
}

// requestCounter counts requests without a response.
type requestCounter struct {
	mu   sync.Mutex // never held across a wait
	n    int
	none chan struct{} // closed when the count is zero; nil: nothing waits for it
}

func (t *requestCounter) enter() (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	return t.leave
}

func (t *requestCounter) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// quiet returns a channel that is closed when the count is zero.
func (t *requestCounter) quiet() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := make(chan struct{})
	if t.n == 0 {
		close(c)
		return c
	}
	if t.none == nil {
		t.none = c
	}
	return t.none
}

// disconnect ends the legacy connections.
func (s *Server) disconnect() {
	var all sync.WaitGroup
	for c := range s.sdk.Sessions() {
		all.Go(func() { _ = c.Close() })
	}
	all.Wait()
}
