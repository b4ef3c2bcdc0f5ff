package web_test

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/tool"
)

// rawServer reads the head of a request on each connection, and then calls
// answer.
func rawServer(t *testing.T, answer func(w io.Writer) error) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if _, err := conn.Read(make([]byte, 4<<10)); err == nil {
					_ = answer(conn)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestAnswersWithoutEnd checks that the bounds stop endless responses, not the
// clock, which here allows an hour: the data comes as fast as possible.
func TestAnswersWithoutEnd(t *testing.T) {
	forever := func(first, then string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, first)
			for err == nil {
				_, err = io.WriteString(w, then)
			}
			return err
		}
	}
	var member bytes.Buffer // an empty compressed member
	require.NoError(t, gzip.NewWriter(&member).Close())
	const packed = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
	head := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	for name, answer := range map[string]func(io.Writer) error{
		"informational answers": forever("", "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"),
		"continue":              forever("", "HTTP/1.1 100 Continue\r\n\r\n"),
		"a status line":         forever("HTTP/1.1 200 ", strings.Repeat("x", 100)),
		"a header":              forever("HTTP/1.1 200 OK\r\nX: ", strings.Repeat("x", 100)),
		"headers":               forever("HTTP/1.1 200 OK\r\n", "X: x\r\n"),
		"a body":                forever("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 100)),
		"chunks":                forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
		"extensions of a chunk": forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("x", 100)),
		"trailers":              forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: x\r\n"),
		"packed nothings":       forever(packed, strings.Repeat(member.String(), 100)),
		"empty packed blocks":   forever(packed+head, strings.Repeat("\x00\x00\x00\xff\xff", 100)),
		"an upgrade":            forever("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", strings.Repeat("x", 100)),
	} {
		t.Run(name, func(t *testing.T) {
			at := rawServer(t, answer)
			client := newClient(t, web.Options{Timeout: time.Hour, MaxBody: 256 << 10}, at)
			out, _ := send(t, &policy{}, web.Request{URL: "http://" + at + "/"}, client)
			require.Equal(t, tool.StatusFailed, out.Status)
			out, _ = send(t, &policy{}, web.Request{Method: http.MethodPost, URL: "http://" + at + "/"}, client)
			require.Equal(t, tool.StatusUnknown, out.Status)
		})
	}
}

// TestDrippingAnswers checks that a response that comes byte by byte is stopped
// in time, in its head and in its body.
func TestDrippingAnswers(t *testing.T) {
	for name, first := range map[string]string{
		"status": "HTTP", "header": "HTTP/1.1 200 OK\r\nX: ", "body": "HTTP/1.1 200 OK\r\n\r\n",
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "packed": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
	} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			t.Cleanup(func() { close(end) })
			at := rawServer(t, func(w io.Writer) error {
				_, err := io.WriteString(w, first)
				<-end // the next byte comes immediately before the timeout
				return err
			})
			client := newClient(t, web.Options{Timeout: 200 * time.Millisecond}, at)
			out, _ := send(t, &policy{}, web.Request{URL: "http://" + at + "/"}, client)
			require.Equal(t, tool.StatusFailed, out.Status)
		})
	}
}

// TestTrailingData checks that data after a response does not count, and that a
// response of another form than declared is an error.
func TestTrailingData(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, "good")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for answer, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngoodHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad":                           "good",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\nX-Late: bad\r\n\r\nbad":                             "good",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + packed.String() + "bad":                                               "",
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 7\r\n\r\ngoodbad":                                                  "",
		"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\ngood":                                                                         "",
		"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n":                          "good",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n4\r\ngood\r\n0\r\n\r\n":                                     "",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n" + packed.String():                                                      "",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\n" + packed.String():                             "",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " + fmt.Sprint(packed.Len()-1) + "\r\n\r\n" + packed.String(): "",
	} {
		at := rawServer(t, func(w io.Writer) error { _, err := io.WriteString(w, answer); return err })
		out, got := send(t, &policy{}, web.Request{URL: "http://" + at + "/"}, newClient(t, web.Options{}, at))
		if want == "" {
			require.Equal(t, tool.StatusFailed, out.Status, "%q gave %q", answer, got.Body)
			continue
		}
		require.Equal(t, tool.StatusDone, out.Status, "%q: %+v", answer, out.Error)
		require.Equal(t, want, string(got.Body))
		require.Empty(t, got.Header.Get("X-Late"))
	}
}

// TestMedia checks the media type in the head of a response, before a byte of
// its body is read: here none ever comes.
func TestMedia(t *testing.T) {
	types := map[string]string{
		"/page": "text/html; charset=utf-8", "/image": "image/png", "/none": "", "/bad": "application/json;;", "/odd": "application/json, text/html",
		"/missing": "text/html",
	}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if media, ok := types[r.URL.Path]; ok {
			w.Header()["Content-Type"] = []string{media}
			if r.URL.Path == "/missing" {
				w.WriteHeader(http.StatusNotFound)
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", map[string]string{"/json": "Application/JSON; charset=utf-8", "/text": "text/plain"}[r.URL.Path])
		_, _ = io.WriteString(w, "{}")
	})
	client := newClient(t, web.Options{Timeout: time.Hour, Media: []string{"application/json", "Text/Plain"}}, addr(server))
	for _, path := range []string{"/page", "/image", "/none", "/bad", "/odd"} {
		out, _ := send(t, &policy{}, web.Request{URL: server.URL + path}, client)
		require.Equal(t, tool.StatusFailed, out.Status, path)
		require.Contains(t, out.Error.Why, "media type")
		out, got := send(t, &policy{}, web.Request{Method: http.MethodPost, URL: server.URL + path}, client)
		require.Equal(t, tool.StatusDone, out.Status, path)
		require.Equal(t, 200, got.Status, "it had its effect")
		require.Empty(t, got.Body)
	}
	out, got := send(t, &policy{}, web.Request{URL: server.URL + "/missing"}, client)
	require.Equal(t, tool.StatusDone, out.Status)
	require.Equal(t, 404, got.Status)
	all := newClient(t, web.Options{Media: []string{"application/*", "text/*"}}, addr(server))
	for _, path := range []string{"/json", "/text"} {
		for _, c := range []*web.Client{client, all, newClient(t, web.Options{}, addr(server))} {
			_, got := send(t, &policy{}, web.Request{URL: server.URL + path}, c)
			require.Equal(t, "{}", string(got.Body), path)
		}
	}
	for _, bad := range []string{"", "json", "text/html; charset=utf-8", "a b/c", "text/"} {
		_, err := web.New(web.Options{Media: []string{bad}})
		require.ErrorContains(t, err, "is no media type", bad)
	}
}

// TestHeadOfMuch checks that HEAD reports a length without a body of that
// length.
func TestHeadOfMuch(t *testing.T) {
	for _, more := range []string{"", "Content-Encoding: gzip\r\n", "Content-Encoding: zstd\r\n"} {
		at := rawServer(t, func(w io.Writer) error {
			_, err := io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n"+more+"\r\n")
			return err
		})
		out, got := send(t, &policy{}, web.Request{Method: http.MethodHead, URL: "http://" + at + "/"}, newClient(t, web.Options{}, at))
		require.Equal(t, tool.StatusDone, out.Status, "%+v", out.Error)
		require.Equal(t, "99999999999", got.Header.Get("Content-Length"))
	}
}

// TestOneProtocol checks that the client uses HTTP/1.1 with a server that
// offers HTTP/2. One connection carries one request, and no request is
// unexpected.
func TestOneProtocol(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	_, got := send(t, &policy{}, web.Request{URL: server.URL + "/"}, newClient(t, web.Options{CAs: pool}, addr(server)))
	require.Equal(t, "HTTP/1.1", string(got.Body))
}
