package process_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/process"
)

// hostPolicy allows everything but the hosts in deny, and records the
// connects. The hosts in ask need an approval.
type hostPolicy struct {
	mu        sync.Mutex
	deny, ask []string
	connects  []string
}

func (p *hostPolicy) Decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Access.Action != perm.Connect {
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	}
	p.connects = append(p.connects, r.Access.Method+" "+r.Access.Resource.Text)
	for _, host := range p.deny {
		if r.Access.Resource.Host == host {
			return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "no packages from there"}}}), nil
		}
	}
	for _, host := range p.ask {
		if r.Access.Resource.Host == host {
			return perm.NewDecision(perm.Ask, perm.Details{Reasons: []perm.Reason{{Text: "an unknown host"}}}), nil
		}
	}
	return perm.NewDecision(perm.Allow, perm.Details{}), nil
}

func (p *hostPolicy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.connects...)
}

// network is a workspace whose programs reach servers of this machine by names
// that end with .test.
type network struct {
	programSetup

	policy *hostPolicy
	tls    *httptest.Server
	plain  *httptest.Server
	port   string // of tls
}

// newNetwork serves https on the name HOST.test, and http on another port.
// Programs find the certificate of the authority in ca.pem.
func newNetwork(t *testing.T, h http.Handler, opts ...agent.SessionOption) *network {
	t.Helper()
	n := &network{policy: &hostPolicy{}, tls: httptest.NewUnstartedServer(h), plain: httptest.NewServer(h)}
	t.Cleanup(n.plain.Close)
	authority, pair := certificates(t)
	n.tls.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	n.tls.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	n.tls.StartTLS()
	t.Cleanup(n.tls.Close)
	var allow []web.Network
	for _, s := range []*httptest.Server{n.tls, n.plain} {
		one, err := web.ParseNetwork(s.Listener.Addr().String())
		require.NoError(t, err)
		allow = append(allow, one)
	}
	_, n.port, _ = net.SplitHostPort(n.tls.Listener.Addr().String())
	client, err := web.New(web.Options{Allow: allow, Resolver: names(t)})
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "ws")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), authority, 0o644))
	rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(process.NetworkTools()...), agent.Root("workspace", dir), agent.Driver(client), agent.Policy(n.policy))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"}, opts...)
	require.NoError(t, err)
	n.programSetup = programSetup{dir, rt, s}
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "process_run", tool.Args{"argv": []string{"true"}})
	require.NoError(t, tx.Commit(t.Context()))
	if err != nil && strings.Contains(o.Error.Why, "remit doctor") {
		t.Skip("this machine has no sandbox: " + o.Error.Why)
	}
	require.NoError(t, err)
	return n
}

// url returns a URL of the https server, under a name.
func (n *network) url(host, path string) string { return "https://" + host + ":" + n.port + path }

// plainURL returns a URL of the http server, under a name.
func (n *network) plainURL(host, path string) string {
	_, port, _ := net.SplitHostPort(n.plain.Listener.Addr().String())
	return "http://" + host + ":" + port + path
}

// certificates returns an authority, and a certificate of it for *.test.
func certificates(t *testing.T) (authority []byte, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	top := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, top, top, &key.PublicKey, key)
	require.NoError(t, err)
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server.test"}, NotBefore: top.NotBefore, NotAfter: top.NotAfter,
		DNSNames: []string{"registry.test", "sums.test", "telemetry.test", "rebind.test", "files.test"}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, top, &leafKey.PublicKey, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{leafDER, der}, PrivateKey: leafKey}
}

// names is a name server that resolves every name of test to this machine, and
// rebind.test to this machine and to a private network in turns.
func names(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go answerNames(conn)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func answerNames(conn net.PacketConn) {
	buf, turn := make([]byte, 1500), 0
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		end := 12
		for end < size && buf[end] != 0 {
			end += int(buf[end]) + 1
		}
		question := buf[12 : end+5]
		var ips []net.IP
		if binary.BigEndian.Uint16(question[len(question)-4:]) == 1 {
			ips = []net.IP{net.IPv4(127, 0, 0, 1).To4()}
			switch turn++; {
			case strings.Contains(string(question), "metadata"):
				ips = []net.IP{net.IPv4(169, 254, 169, 254).To4()}
			case strings.Contains(string(question), "rebind") && turn%2 == 0:
				ips = []net.IP{net.IPv4(10, 0, 0, 1).To4()}
			}
		}
		reply := append([]byte{buf[0], buf[1], 0x81, 0x80, 0, 1, 0, byte(len(ips)), 0, 0, 0, 0}, question...)
		for _, ip := range ips {
			reply = append(append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip...)
		}
		_, _ = conn.WriteTo(reply, from)
	}
}
