package simdisk_test

import (
	"testing"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/disktest"
	"github.com/remit-dev/remit/internal/disk/simdisk"
)

func TestRoot(t *testing.T) {
	disktest.Run(t, func(*testing.T) disk.Root { return simdisk.New().Root() })
}
