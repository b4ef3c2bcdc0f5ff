package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/sqlite"
)

// startServer serves the fixtures: tools of a runtime with the workspace policy
// and a durable journal.
func startServer(ctx context.Context, dir string) (where []string, stop func() error, err error) {
	journal, err := sqlite.Open(ctx, filepath.Join(dir, "journal"))
	if err != nil {
		return nil, nil, err
	}
	f := &fixtures{}
	tools, err := f.tools()
	if err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	if f.rt, err = agent.New(agent.Tools(tools...), agent.Journal(journal), agent.SuspendForApproval(), agent.Log(slog.New(slog.DiscardHandler))); err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	closeAll := func() error { return errors.Join(f.rt.Close(), journal.Close()) }
	where, end, err := f.serve(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	return where, func() error { return errors.Join(end(), closeAll()) }, nil
}

func (f *fixtures) serve(ctx context.Context) (where []string, stop func() error, err error) {
	if f.srv, err = mcp.New(f.rt, mcp.Options{Name: "remit-conformance", Version: "1", Tasks: alwaysTasks(), TaskAfter: taskAfter}); err != nil {
		return nil, nil, err
	}
	if err := f.offer(); err != nil {
		return nil, nil, err
	}
	s, err := f.rt.Session(ctx, perm.Principal{ID: "suite"}, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	serving, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- f.srv.Serve(serving, l, mcp.HTTPOptions{}) }()
	where, closeFront, err := gatewayProcess(l.Addr().String(), s.Token(), http.DefaultTransport)
	if err != nil {
		end()
		return nil, nil, errors.Join(err, <-done)
	}
	return where, func() error {
		err := closeFront()
		end()
		return errors.Join(err, <-done)
	}, nil
}

// gatewayProcess hands requests on with the token that the suite knows nothing of. All else of them stays.
func gatewayProcess(addr, token string, by http.RoundTripper) (where []string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: addr})
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		FlushInterval: -1, Transport: by,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	srv := &http.Server{Handler: whole(proxy)}
	go func() { _ = srv.Serve(l) }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return []string{"--url", "http://localhost:" + port + "/mcp"}, srv.Close, nil
}

// whole has a request read before it is handed on. An answer that begins while its request is still read ends the reading, and with it the
// connection that the answer comes from: one in some hundred streams broke off in the middle.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if r.Body = http.NoBody; len(body) > 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(w, r)
	})
}
