package diff

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git names content so; nothing is secured by it
	"encoding/binary"
	"fmt"
	"strings"
)

// binaryPatch writes both sides of content in git's format. git accepts it only
// with the blob names of both sides.
func binaryPatch(was, is ResourceVersion, from, to []byte) (string, error) {
	forth, err := literal(to)
	if err != nil {
		return "", err
	}
	back, err := literal(from)
	if err != nil {
		return "", err
	}
	return indexLine(was, is, from, to) + "\nGIT binary patch\n" + forth + "\n" + back + "\n", nil
}

func indexLine(was, is ResourceVersion, from, to []byte) string {
	return "index " + blobName(was, from) + ".." + blobName(is, to)
}

// blobName returns git's name for content, or zeros if there is none.
func blobName(s ResourceVersion, data []byte) string {
	if !s.Exists() {
		return strings.Repeat("0", 2*sha1.Size)
	}
	h := sha1.New() //nolint:gosec // see above
	_, _ = fmt.Fprintf(h, "blob %d\x00", len(data))
	_, _ = h.Write(data)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// literal returns compressed content in lines of at most 52 bytes, each with
// its length first.
func literal(data []byte) (string, error) {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "literal %d\n", len(data))
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(len(rest), 52)
		length := byte('A' + n - 1)
		if n > 26 {
			length = byte('a' + n - 27)
		}
		out.WriteByte(length)
		out.WriteString(base85(rest[:n]))
		out.WriteByte('\n')
		rest = rest[n:]
	}
	return out.String(), nil
}

const digits85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// base85 writes each four bytes as five digits. Zeros fill the last group.
func base85(p []byte) string {
	var out strings.Builder
	for len(p) > 0 {
		var four [4]byte
		p = p[copy(four[:], p):]
		var digits [5]byte
		v := binary.BigEndian.Uint32(four[:])
		for i := range digits {
			digits[len(digits)-1-i] = digits85[v%85]
			v /= 85
		}
		out.Write(digits[:])
	}
	return out.String()
}
