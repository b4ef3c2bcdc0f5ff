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

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ending is how long calls that run may take to end when the server does.
const ending = 15 * time.Second

// Serve answers requests that a listener accepts, at the path /mcp, until the context ends. Calls that run by then have a
// while to end; streams end at once. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener, opts HTTPOptions) error {
	opts = opts.withDefaults()
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler(opts))
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: opts.Reading, ReadTimeout: opts.Reading, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
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
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.disconnect()
	}()
	err := srv.Shutdown(wait)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	select {
	case <-closed:
	case <-wait.Done():
	}
	<-failed
	return err
}

// disconnect ends the connections that stay.
func (s *Server) disconnect() {
	var all sync.WaitGroup
	for c := range s.sdk.Sessions() {
		all.Go(func() { _ = c.Close() })
	}
	all.Wait()
}

// connections is how many of an older revision one session may keep over HTTP.
const connections = 16

// join counts a connection that stays among those of its session, until it ends.
func (s *Server) join(st *seat, c *sdk.ServerSession) error {
	if !st.join(connections) {
		return errors.New("the session has as many connections as it may")
	}
	go func() {
		_ = c.Wait()
		st.part()
	}()
	return nil
}
