package treecheck

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// blockSize is the unit in which a digest leaves out zeros.
const blockSize = 64 << 10

var zeros [blockSize]byte

// content returns the digest of a file and the number of its bytes outside of
// holes. It reads nothing inside a hole: reading there makes some file systems
// report data afterwards.
func (c *capture) content(path int, size int64) (digest Digest, data int64, err error) {
	fd, err := open(unix.AT_FDCWD, procPath(path), unix.O_RDONLY)
	if err != nil {
		return digest, 0, err
	}
	defer closeFD(fd)
	d := newDigester(size, c.buffer)
	for end := int64(0); end < size; {
		start, err := seek(fd, end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // a hole up to the end
		}
		if err == nil {
			end, err = seek(fd, start, unix.SEEK_HOLE)
		}
		if err != nil {
			return digest, 0, err
		}
		end = min(end, size)
		data += max(0, end-start)
		if err := d.read(fd, start, end); err != nil {
			return digest, 0, err
		}
	}
	return d.sum(), data, nil
}

// digester computes a Digest from the data of a file in ascending order.
type digester struct {
	hash  hash.Hash
	size  int64
	block []byte // the bytes from offset at
	at    int64
}

func newDigester(size int64, block []byte) *digester {
	d := &digester{hash: sha256.New(), size: size, block: block}
	d.number(size)
	clear(block)
	return d
}

// read adds the bytes of a file from start to end.
func (d *digester) read(fd int, start, end int64) error {
	for start < end {
		if at := start - start%blockSize; at != d.at {
			d.flush()
			d.at = at
		}
		part := d.block[start-d.at : min(end-d.at, blockSize)]
		n, err := retry(func() (int, error) { return unix.Pread(fd, part, start) })
		if err != nil {
			return err
		}
		if n == 0 {
			return errChanged
		}
		start += int64(n)
	}
	return nil
}

// flush adds the current block to the hash if it contains a byte other than zero.
func (d *digester) flush() {
	block := d.block[:min(blockSize, d.size-d.at)]
	if bytes.Equal(block, zeros[:len(block)]) {
		return
	}
	d.number(d.at)
	d.hash.Write(block)
	clear(block)
}

func (d *digester) number(n int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	d.hash.Write(b[:])
}

func (d *digester) sum() Digest {
	d.flush()
	return Digest(d.hash.Sum(nil))
}

// xattrs returns the extended attributes of an inode in the order of their names.
func xattrs(fd int) ([]Attribute, error) {
	path := procPath(fd)
	list, err := sized(func(b []byte) (int, error) { return unix.Listxattr(path, b) })
	if errors.Is(err, unix.ENOTSUP) || len(list) == 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	slices.Sort(names)
	found := make([]Attribute, 0, len(names))
	for _, name := range names {
		value, err := sized(func(b []byte) (int, error) { return unix.Getxattr(path, name, b) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found = append(found, newAttribute(name, value))
	}
	return found, nil
}

func newAttribute(name string, value []byte) Attribute {
	x := Attribute{Name: name, Value: string(value), Size: len(value)}
	if x.Size > maxXattr {
		sum := sha256.Sum256(value)
		x.Value = string(sum[:])
	}
	return x
}

// procPath names the inode of a descriptor by O_PATH. The kernel goes to exactly
// this inode and follows no further link, also if it is a symlink.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// sized calls read with a buffer that is large enough.
func sized(read func([]byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 4 {
		b := make([]byte, size)
		n, err := retry(func() (int, error) { return read(b) })
		if err == nil {
			return b[:n], nil
		}
		if !errors.Is(err, unix.ERANGE) || size > 1<<20 {
			return nil, err
		}
	}
}

func readlink(fd int, size int64) (string, error) {
	b := make([]byte, size+1)
	n, err := unix.Readlinkat(fd, "", b)
	if err == nil && int64(n) > size {
		err = errChanged
	}
	return string(b[:max(0, n)]), err
}

// readNames returns the raw names in a directory, without "." and "..".
func readNames(path int) ([]string, error) {
	fd, err := open(unix.AT_FDCWD, procPath(path), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer closeFD(fd)
	var names []string
	for b := make([]byte, 32<<10); ; {
		n, err := retry(func() (int, error) { return unix.ReadDirent(fd, b) })
		if err != nil || n == 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(b[:n], -1, names)
	}
}

func open(dir int, name string, flags int) (int, error) {
	return retry(func() (int, error) { return unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0) })
}

func stat(fd int) (st unix.Stat_t, err error) {
	_, err = retry(func() (int, error) { return 0, unix.Fstat(fd, &st) })
	return st, err
}

func seek(fd int, offset int64, whence int) (at int64, err error) {
	_, err = retry(func() (_ int, err error) { at, err = unix.Seek(fd, offset, whence); return 0, err })
	return at, err
}

func closeFD(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd) // nothing was written
	}
}

// retry calls a function again while a signal interrupts it.
func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
