package postgres_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy passes connections on to a server, and cuts them.
type proxy struct {
	listener net.Listener
	to       func() (net.Conn, error)

	mu     sync.Mutex
	down   bool
	pairs  map[net.Conn]net.Conn
	before func(fromClient []byte) cut // called for each piece from a client
}

// cut says what happens to a piece from a client.
type cut int

const (
	pass     cut = iota
	dropped      // the connection ends, and the piece is lost
	answered     // the server gets the piece, and its answer is lost
)

// newProxy listens for clients of the server at the URL.
func newProxy(t *testing.T, at string) *proxy {
	t.Helper()
	u, err := url.Parse(at)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	socket := u.Query().Get("host") + "/.s.PGSQL.5432"
	p := &proxy{listener: listener, to: func() (net.Conn, error) { return net.Dial("unix", socket) }, pairs: map[net.Conn]net.Conn{}}
	go p.accept()
	t.Cleanup(func() {
		_ = listener.Close()
		p.cutAll(true)
	})
	return p
}

// url is the URL of a server through the proxy.
func (p *proxy) url(t *testing.T, at string) string {
	u, err := url.Parse(at)
	require.NoError(t, err)
	u.Host, u.RawQuery = p.listener.Addr().String(), "sslmode=disable"
	return u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := p.to()
		p.mu.Lock()
		if err != nil || p.down {
			_ = client.Close()
			if server != nil {
				_ = server.Close()
			}
		} else {
			p.pairs[client] = server
			go p.forward(client, server)
			go p.back(client, server)
		}
		p.mu.Unlock()
	}
}

// cutAll ends all connections, and refuses new ones while the proxy is down.
func (p *proxy) cutAll(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for client, server := range p.pairs {
		_, _ = client.Close(), server.Close()
		delete(p.pairs, client)
	}
}

func (p *proxy) forward(client, server net.Conn) {
	defer func() { _, _ = client.Close(), server.Close() }()
	piece := make([]byte, 1<<20)
	for {
		n, err := client.Read(piece)
		if err != nil {
			return
		}
		what := pass
		p.mu.Lock()
		if p.before != nil {
			what = p.before(piece[:n])
		}
		p.mu.Unlock()
		switch what {
		case dropped:
			return
		case answered:
			_ = client.Close()
			_, _ = server.Write(piece[:n])
			_, _ = io.Copy(io.Discard, server) // the server ends when it finds out
			return
		default:
		}
		if _, err := server.Write(piece[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) back(client, server net.Conn) {
	_, _ = io.Copy(client, server)
	if p.isPaired(client) {
		_ = client.Close()
	}
}

func (p *proxy) isPaired(client net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.pairs[client]
	return ok
}

// onCommit calls what for each piece that commits an append.
func (p *proxy) onAppend(what func() cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = func(piece []byte) cut {
		if bytes.Contains(piece, []byte(marker)) {
			return what()
		}
		return pass
	}
}

// marker is in every entry of numbered, so in the piece with the commit.
const marker = `{"tool":{"name":"tool"}`
