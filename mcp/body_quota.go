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

// smallBody is what a body may have without being counted: those are as many as there may be requests.
const smallBody = 64 << 10

// byteQuota is how many bytes of larger bodies may be in memory, in all or of one session. Whoever is over it waits for a while.
type byteQuota struct{ *semaphore.Weighted }

func newByteQuota(bytes int64) byteQuota { return byteQuota{semaphore.NewWeighted(bytes)} }

// share is the part of the room that one session has: two of the largest bodies.
func (o HTTPOptions) share() int64 { return min(2*o.MaxBody, o.MaxBufferedBodies) }

var (
	errLarge = errors.New("the request is too large")
	errLate  = errors.New("the request did not arrive")
	errFull  = errors.New("too many large requests at once")
)

// readBody reads the body, which is bounded in size and time, before anybody acts on it. Done gives its room back.
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
		return nil, nil, errLarge // it says so itself
	}
	read := func(into *bytes.Buffer, most int64) error {
		// Set for each part: a server that somebody else runs has no deadline, and waiting for room is not the client's fault.
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
	b.Grow(int(size) + 1 - b.Len()) // once, or growing would take as much again
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

// reserve takes room for a body, first that of its session, so that one session cannot have others wait.
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
