package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// smallBody is the largest body that the quota does not count. The limit on
// requests bounds their number.
const smallBody = 64 << 10

// byteQuota bounds the bytes of larger bodies in memory, in all or of one
// session. A request over the quota waits for a while.
type byteQuota struct{ *semaphore.Weighted }

func newByteQuota(bytes int64) byteQuota { return byteQuota{semaphore.NewWeighted(bytes)} }

// share is the quota of one session: two bodies of the largest size.
func (o HTTPOptions) share() int64 { return min(2*o.MaxBody, o.MaxBufferedBodies) }

var (
	errLarge = errors.New("the request is too large")
	errLate  = errors.New("the request did not arrive")
	errFull  = errors.New("too many large requests at once")
)

// readBody reads the body, within its limits of size and time, before any code
// acts on it. Done releases its quota.
func (d *httpHandler) readBody(w http.ResponseWriter, r *http.Request, st *clientSession) (body []byte, done func(), ok bool) {
	body, done, err := d.body(w, r, st)
	switch {
	case err == nil:
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		wrong := doubled(body)
		if wrong == nil {
			wrong = d.s.headersFit(r, st, body)
		}
		if wrong != nil {
			done()
			mismatched(w, body, wrong)
			return nil, nil, false
		}
		return body, done, true
	case errors.Is(err, errLarge):
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	case errors.Is(err, errFull):
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		w.Header().Set("Connection", "close")
		http.Error(w, errLate.Error(), http.StatusRequestTimeout)
	}
	return nil, nil, false
}

func (d *httpHandler) body(w http.ResponseWriter, r *http.Request, st *clientSession) (body []byte, done func(), err error) {
	if r.ContentLength > d.opts.MaxBody {
		return nil, nil, errLarge // the handler reports that itself
	}
	read := func(into *bytes.Buffer, most int64) error {
		// The deadline is set for each part: a server of the host program can
		// have none, and the wait for quota is not the client's fault.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d.opts.ReadTimeout))
		_, err := io.Copy(into, io.LimitReader(r.Body, most))
		return err
	}
	var b bytes.Buffer
	b.Grow(int(min(max(r.ContentLength, 0), smallBody)) + bytes.MinRead)
	if err := read(&b, min(smallBody, d.opts.MaxBody)+1); err != nil {
		return nil, nil, errLate
	}
	if int64(b.Len()) > d.opts.MaxBody {
		return nil, nil, errLarge
	}
	if b.Len() <= smallBody {
		return b.Bytes(), func() {}, nil
	}
	size := r.ContentLength
	if size < 0 {
		size = d.opts.MaxBody
	}
	if done, err = d.reserve(r.Context(), st, size); err != nil {
		return nil, nil, err
	}
	b.Grow(int(size) + 1 - b.Len()) // once; growing it step by step needs as much again
	switch err = read(&b, size+1-int64(b.Len())); {
	case err != nil:
		err = errLate
	case int64(b.Len()) > d.opts.MaxBody:
		err = errLarge
	default:
		return b.Bytes(), done, nil
	}
	done()
	return nil, nil, err
}

// reserve takes quota for a body, first that of its session, so that one
// session cannot make others wait.
func (d *httpHandler) reserve(ctx context.Context, st *clientSession, size int64) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, d.opts.ReadTimeout)
	defer cancel()
	own := st.bodyQuotaFor(d.opts.share())
	if own.Acquire(ctx, size) != nil {
		return nil, errFull
	}
	if d.room.Acquire(ctx, size) != nil {
		own.Release(size)
		return nil, errFull
	}
	return func() {
		d.room.Release(size)
		own.Release(size)
	}, nil
}
