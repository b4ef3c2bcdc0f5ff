package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Cell encodes a value without loss.
func Cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case int64:
		return "i" + strconv.FormatInt(v, 10)
	case float64:
		return "r" + strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		if utf8.ValidString(v) {
			return "t" + v
		}
		return "x" + base64.StdEncoding.EncodeToString([]byte(v))
	case []byte:
		return "b" + base64.StdEncoding.EncodeToString(v)
	default:
		panic(fmt.Sprintf("a cell of type %T", v)) // engines return no others
	}
}

// Value decodes what Cell writes. It refuses another spelling of a value,
// because rows are compared by their cells.
func Value(cell string) (any, error) {
	v, err := parse(cell)
	if err != nil {
		return nil, err
	}
	if Cell(v) != cell {
		return nil, fmt.Errorf("a cell of the type %q that is not written as one", cell[:1])
	}
	return v, nil
}

func parse(cell string) (any, error) {
	if cell == "" {
		return nil, nil
	}
	text := cell[1:]
	switch cell[0] {
	case 'i':
		return strconv.ParseInt(text, 10, 64)
	case 'r':
		return strconv.ParseFloat(text, 64)
	case 't':
		return text, nil
	case 'x':
		raw, err := base64.StdEncoding.DecodeString(text)
		return string(raw), err
	case 'b':
		raw, err := base64.StdEncoding.DecodeString(text)
		if raw == nil {
			raw = []byte{}
		}
		return raw, err
	default:
		return nil, fmt.Errorf("a cell of the unknown type %q", cell[:1])
	}
}

// Values decodes cells.
func Values(cells []string) ([]any, error) {
	out := make([]any, len(cells))
	for i, c := range cells {
		v, err := Value(c)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// Same reports whether two images have the same content.
func (i Image) Same(o Image) bool {
	if (i == nil) != (o == nil) || len(i) != len(o) {
		return false
	}
	for n := range i {
		if i[n] != o[n] {
			return false
		}
	}
	return true
}

// Digest identifies the content of a row within a table. It is equal only for
// the same cells in the same columns.
func (i Image) Digest(t Table) string {
	h := sha256.New()
	put := func(s string) {
		h.Write(binary.AppendUvarint(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	put("remit/row/v1")
	put(t.Name)
	for n, c := range t.Cols {
		put(c)
		put(i[n])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Plain returns a float for JSON: infinities and NaN become text.
func Plain(f float64) any {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return f
}
