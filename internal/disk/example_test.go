package disk_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/remit-dev/remit/internal/disk"
)

func Example() {
	dir, err := os.MkdirTemp("", "disk")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := disk.OpenRoot(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = root.Close() }()

	file, err := root.Create("note.txt", 0o640)
	if err != nil {
		log.Fatal(err)
	}
	_, err = io.WriteString(file, "hello")
	if err := errors.Join(err, file.Sync(), file.Close(), root.SyncDir(".")); err != nil {
		log.Fatal(err)
	}
	info, err := root.Lstat("note.txt")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Name, info.Type, info.Perm, info.Size)

	_, err = root.Open("../note.txt")
	fmt.Println(errors.Is(err, disk.ErrPath))
	// Output:
	// note.txt file -rw-r----- 5
	// true
}
