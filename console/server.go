package console

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// Limits of connections. A page that gets live updates keeps one open.
const (
	maxConnections = 64
	readTimeout    = 10 * time.Second
	writeTimeout   = time.Minute // a difference of large files takes its time
	endTimeout     = 5 * time.Second
)

// Serve serves the pages to the connections of a listener until the context
// ends. It closes the listener.
func (c *Console) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: c.handler, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog:    log.New(io.Discard, "", 0), // broken connections; the server can do nothing about them
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(netutil.LimitListener(l, maxConnections)) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	c.end.Do(func() { close(c.done) })
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := srv.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	if gone := <-failed; !errors.Is(gone, http.ErrServerClosed) {
		err = errors.Join(err, gone)
	}
	return err
}
