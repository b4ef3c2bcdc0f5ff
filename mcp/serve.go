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

// ending is how long calls that run may take to end when the server does.
const ending = 15 * time.Second

// Serve answers requests that a listener accepts, at the path /mcp, until the context ends. Calls that run by then have a
// while to end; streams end at once. It closes the listener.
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
		ErrorLog:    log.New(io.Discard, "", 0), // of connections that break, which is nothing to do about
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

// end lets what is to be answered be answered, and then ends the streams, which would go on for ever.
func (s *Server) end(ctx context.Context, srv *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, ending)
	defer cancel()
	down := make(chan error, 1)
	go func() { down <- srv.Shutdown(ctx) }() // it takes no more
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

// requestCounter counts requests that are to be answered.
type requestCounter struct {
	mu   sync.Mutex // never held across a wait
	n    int
	none chan struct{} // closed when there is none; nil: nobody waits for that
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

// quiet is closed as soon as there is none.
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

// disconnect ends the connections that stay.
func (s *Server) disconnect() {
	var all sync.WaitGroup
	for c := range s.sdk.Sessions() {
		all.Go(func() { _ = c.Close() })
	}
	all.Wait()
}
