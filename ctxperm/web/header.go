package web

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
)

// refusedHeaders are the headers that a caller cannot set, in lower case. They
// belong to the connection, determine the framing or the destination, carry
// credentials, replace the method or address that the policy saw, or the client
// sets them.
var refusedHeaders = []string{
	"host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect",
	"authorization", "proxy-authorization", "proxy-authenticate", "cookie", "cookie2", "set-cookie", "www-authenticate",
	"x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url", "x-original-method",
	"forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "x-forwarded", "via",
	"accept-encoding", "content-encoding", "range", "http2-settings", "metadata", "metadata-flavor",
	"if-match", "if-none-match", "idempotency-key",
}

// refusedPrefixes are prefixes of further refused headers.
var refusedPrefixes = []string{"x-forwarded-", "proxy-", "sec-", ":", "x-aws-ec2-", "x-amz-security", "x-google-"}

// Bounds of the number of headers and their bytes.
const (
	maxHeaders     = 64
	maxHeaderBytes = 16 << 10
)

// checkHeader returns ErrInvalid, with the reason, for a header that a caller
// cannot set.
func checkHeader(name, value string) error {
	// Servers behind a gateway treat underscores and dashes as equal.
	plain := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	switch {
	case !token(name):
		return fmt.Errorf("%w header name: valid are letters, digits and !#$%%&'*+-.^_`|~", ctxperm.ErrInvalid)
	case slices.Contains(refusedHeaders, plain) || slices.ContainsFunc(refusedPrefixes, func(p string) bool { return strings.HasPrefix(plain, p) }):
		return fmt.Errorf("%w header %s: only remit may set it; configure credentials for a host, as a secret", ctxperm.ErrInvalid, textproto.CanonicalMIMEHeaderKey(name))
	case !headerValue(value):
		return fmt.Errorf("%w value of header %s: valid is printable ASCII, with spaces and tabs inside", ctxperm.ErrInvalid, textproto.CanonicalMIMEHeaderKey(name))
	}
	return nil
}

func token(s string) bool {
	return s != "" && len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

func headerValue(s string) bool {
	return s == strings.Trim(s, " \t") && !strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && (r < ' ' || r >= 0x7f) })
}

// headersOf checks the headers of a request and copies them.
func headersOf(in map[string]string) (http.Header, error) {
	out := http.Header{}
	total := 0
	for name, value := range in {
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		key := textproto.CanonicalMIMEHeaderKey(name)
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("%w headers: %s is there twice", ctxperm.ErrInvalid, key)
		}
		out[key] = []string{value}
		total += len(name) + len(value)
	}
	if len(out) > maxHeaders || total > maxHeaderBytes {
		return nil, fmt.Errorf("%w headers: at most %d, of %d bytes together, are valid", ctxperm.ErrInvalid, maxHeaders, maxHeaderBytes)
	}
	return out, nil
}
