package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// forward sends one plain request on its own connection, and returns the
// response.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, to net.Conn, host string) {
	once := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return to, nil },
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, ResponseHeaderTimeout: p.limits.Idle,
	}
	out := r.Clone(p.ctx)
	out.RequestURI, out.Close, out.Trailer = "", true, nil
	out.Host, out.URL.Host = host, host // never a Host header of the program
	plainHeader(out.Header)
	if _, named := out.Header["User-Agent"]; !named {
		out.Header["User-Agent"] = nil // else the transport adds its own
	}
	if r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	resp, err := once.RoundTrip(out)
	if err != nil {
		answer(w, http.StatusBadGateway, "the host gave no valid response: "+err.Error())
		return
	}
	defer func() { _ = resp.Body.Close() }()
	plainHeader(resp.Header)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	flush, _ := w.(http.Flusher)
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return
			}
			flush.Flush()
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the program must not take the part for the whole
		}
	}
}

// plainHeader removes the headers that concern only one connection.
func plainHeader(h http.Header) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
}

// tunnel passes bytes in both directions until one side ends both.
func (p *Proxy) tunnel(w http.ResponseWriter, to net.Conn, t *traffic) {
	hijack, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	from, buffered, err := hijack.Hijack()
	if err != nil {
		return
	}
	if !p.keep(from) {
		_ = from.Close()
		return
	}
	defer p.drop(from)
	_ = from.SetDeadline(time.Time{})
	if _, err := io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.pipe(from, to, to, t) })
	p.pipe(to, bufferedReader(buffered.Reader, from), from, t)
	back.Wait()
}

// bufferedReader reads what the server has already read, and then the
// connection.
func bufferedReader(r *bufio.Reader, from net.Conn) io.Reader {
	if n := r.Buffered(); n > 0 {
		return io.MultiReader(io.LimitReader(r, int64(n)), from)
	}
	return from
}

// pipe copies one direction. It ends at the end of the source, which it passes
// on, or after an idle time without a byte in either direction.
func (p *Proxy) pipe(dst net.Conn, src io.Reader, timed net.Conn, t *traffic) {
	buf := make([]byte, 32<<10)
	for {
		seen := t.total()
		_ = timed.SetReadDeadline(time.Now().Add(p.limits.Idle))
		n, err := src.Read(buf)
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				_ = timed.Close() // so that the other direction ends
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && t.total() != seen:
		case errors.Is(err, io.EOF):
			closeWrite(dst)
			return
		default:
			_ = dst.Close()
			_ = timed.Close()
			return
		}
	}
}

// closeWrite passes on the end of a stream.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}

func (t *traffic) total() int64 { return t.sent.Load() + t.received.Load() }

// counted is a connection to a host that counts its bytes.
type counted struct {
	net.Conn

	traffic *traffic
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.received.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	c.traffic.sent.Add(int64(len(b))) // first: the response can end the proxy before Write returns
	n, err := c.Conn.Write(b)
	c.traffic.sent.Add(int64(n - len(b)))
	return n, err
}

func (c *counted) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}

// bounded accepts a limited number of connections at once. The others wait in
// the kernel.
type bounded struct {
	net.Listener

	places chan struct{}
	over   chan struct{}
	once   sync.Once
}

func newBounded(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, places: make(chan struct{}, most), over: make(chan struct{})}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.over:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &placed{Conn: c, leave: sync.OnceFunc(func() { <-b.places })}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.over) })
	return b.Listener.Close()
}

// placed leaves its place when it closes.
type placed struct {
	net.Conn

	leave func()
}

func (c *placed) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

func (c *placed) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}
