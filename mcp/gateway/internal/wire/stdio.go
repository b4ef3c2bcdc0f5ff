package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// stdioTransport is a transport over standard input and output. It differs from
// the SDK's: the reader parses a response in one pass, a server can send
// batches in any revision, and a line that is no message does not end the
// connection.
type stdioTransport struct {
	stdin io.WriteCloser
	out   io.ReadCloser
}

// Connect starts the connection.
func (p stdioTransport) Connect(context.Context) (sdk.Connection, error) {
	return &stdioConn{stdioTransport: p, from: bufio.NewReaderSize(p.out, mostKept), writing: make(chan struct{}, 1)}, nil
}

// stdioConn is the connection of a pipe.
type stdioConn struct {
	stdioTransport

	from    *bufio.Reader           // only the reader uses these
	more    []jsonrpc.Message       // the rest of a batch
	skipped func(line []byte) error // receives each line that is no message; its error ends the connection; can be nil

	writing chan struct{} // serializes writes; a server that does not read blocks the others
	closing sync.Once
	closed  error
}

// Read waits for a message. Close ends the wait; the context does not.
func (p *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for len(p.more) == 0 {
		line, err := p.next()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			continue
		}
		if p.more, err = readMessages(line); err != nil {
			p.more = nil
			if p.skipped == nil {
				continue
			}
			if err := p.skipped(line); err != nil {
				return nil, err
			}
		}
	}
	m := p.more[0]
	p.more = p.more[1:]
	return m, nil
}

// asItIs leaves the checks for valid UTF-8 and duplicate members to the
// receiver of the message.
var asItIs = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// mostKept bounds the buffer that is kept for the next message.
const mostKept = 64 << 10

// next returns the next line without surrounding space. The last line needs no
// line end.
func (p *stdioConn) next() (line []byte, err error) {
	for {
		part, err := p.from.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxMessage {
			return nil, errLong
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0:
			return bytes.TrimSpace(line), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// readMessages parses a message or a batch.
func readMessages(raw jsontext.Value) (all []jsonrpc.Message, err error) {
	each := []jsontext.Value{raw}
	if raw.Kind() == '[' {
		if err := jsonv2.Unmarshal(raw, &each, asItIs); err != nil {
			return nil, err
		}
	}
	for _, one := range each {
		m, err := readMessage(one)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return nil, errors.New("a list of messages is empty")
	}
	return all, nil
}

var errNoMessage = errors.New("the line is not one value of JSON")

// readMessage parses a message: a plain response by itself, everything else by
// the SDK.
func readMessage(raw jsontext.Value) (jsonrpc.Message, error) {
	var m struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Method  jsontext.Value `json:"method"`
		Result  jsontext.Value `json:"result"`
		Error   jsontext.Value `json:"error"`
	}
	if err := jsonv2.Unmarshal(raw, &m, asItIs); err == nil && m.Version == "2.0" && m.Method == nil && m.Error == nil {
		if n, err := strconv.ParseInt(string(m.ID), 10, 32); err == nil {
			id, err := jsonrpc.MakeID(float64(n))
			return &jsonrpc.Response{ID: id, Result: []byte(m.Result)}, err
		}
	}
	if !raw.IsValid(asItIs) { // such as two messages on one line, of which the SDK reads the first
		return nil, errNoMessage
	}
	return jsonrpc.DecodeMessage(raw)
}

// Write writes one message as a line. The context ends the wait for other
// writes, not a started write: half a line would break the connection.
func (p *stdioConn) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return p.line(ctx, data, new(atomic.Bool))
}

// request writes a request with encoded parameters, unless sent says that it
// must not be sent.
func (p *stdioConn) request(ctx context.Context, id int64, method string, params []byte, sent *atomic.Bool) error {
	return p.line(ctx, fmt.Appendf(make([]byte, 0, len(params)+len(method)+64), `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params), sent)
}

func (p *stdioConn) line(ctx context.Context, data []byte, sent *atomic.Bool) error {
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	}
	defer func() { <-p.writing }()
	if !sent.CompareAndSwap(false, true) {
		return ErrNotSent
	}
	_, err := p.stdin.Write(append(data, '\n'))
	return err
}

// Close closes both files, which ends waiting reads and writes.
func (p *stdioConn) Close() error {
	p.closing.Do(func() { p.closed = errors.Join(p.stdin.Close(), p.out.Close()) })
	return p.closed
}

// SessionID returns "", as a pipe has no session ID.
func (*stdioConn) SessionID() string { return "" }

// ended matches the errors of the pipes of an exited program.
var ended = regexp.MustCompile(`: (EOF|(read|write) .*: (broken pipe|file already closed))$`)

// PipeEnded reports whether the SDK lost a connection because the program at
// the other end of the pipe exited. The SDK wraps no further error.
func PipeEnded(err error) bool {
	return errors.Is(err, sdk.ErrConnectionClosed) && ended.MatchString(err.Error())
}
