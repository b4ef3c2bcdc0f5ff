package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // a format that a page shows
	_ "image/jpeg" // a format that a page shows
	"image/png"
	"io"
	"net/http"

	"github.com/remit-dev/remit/revert/diff"
)

// Limits of images. Decoding one takes at most 8 bytes of memory for each pixel,
// and images are decoded one after another.
const (
	maxPixels   = 8 << 20
	maxImageLen = diff.MaxText
)

// picture is an image that a page shows. The browser never gets the bytes that
// an agent wrote: the console decodes them and sends the pixels as PNG. What is
// no raster image, such as SVG, is not shown.
type picture struct {
	Address       string
	Side          string // before, after
	Format        string
	Width, Height int
}

// pictures returns the images among the versions of a binary resource.
func pictures(ctx context.Context, d diff.Delta, address string) (all []picture) {
	for _, side := range []string{"before", "after"} {
		conf, format, _, err := imageOf(ctx, versionOf(d, side))
		if err == nil {
			all = append(all, picture{address + "&side=" + side, side, format, conf.Width, conf.Height})
		}
	}
	return all
}

func versionOf(d diff.Delta, side string) diff.ResourceVersion {
	if side == "before" {
		return d.Before
	}
	return d.After
}

// imageOf reads the content of a version that is an image of moderate size.
func imageOf(ctx context.Context, v diff.ResourceVersion) (conf image.Config, format string, data []byte, err error) {
	if v.Type != "file" {
		return conf, "", nil, diff.ErrContentGone
	}
	r, err := v.Open(ctx)
	if err != nil {
		return conf, "", nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err = io.ReadAll(io.LimitReader(r, maxImageLen+1))
	if err == nil && len(data) > maxImageLen {
		err = fmt.Errorf("it has more than %d bytes", maxImageLen)
	}
	if err != nil {
		return conf, "", nil, err
	}
	conf, format, err = image.DecodeConfig(bytes.NewReader(data))
	if err == nil && (conf.Width <= 0 || conf.Height <= 0 || conf.Width > maxPixels/conf.Height) {
		err = fmt.Errorf("it has %d × %d pixels", conf.Width, conf.Height)
	}
	return conf, format, data, err
}

// image serves the pixels of one version of a file in a difference.
func (c *Console) image(w http.ResponseWriter, r *http.Request) {
	text, err := c.pixels(r)
	if err != nil {
		c.problem(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	_, _ = w.Write(text)
}

func (c *Console) pixels(r *http.Request) ([]byte, error) {
	ctx, q := r.Context(), r.URL.Query()
	none := &problem{http.StatusNotFound, "There is no such image", ""}
	d, err := c.Runtime.Diff(ctx, idOf(q))
	if err != nil {
		return nil, err
	}
	n, side := number(r, "file"), q.Get("side")
	if !q.Has("file") || n >= int64(len(d.Deltas)) || side != "before" && side != "after" {
		return nil, none
	}
	_, _, data, err := imageOf(ctx, versionOf(d.Deltas[n], side))
	if err != nil {
		return nil, none
	}
	if request := q.Get("request"); request != "" {
		if err := c.unchanged(ctx, d.Txn, request); err != nil {
			return nil, err
		}
	}
	c.decoding.Lock()
	defer c.decoding.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, &problem{http.StatusNotFound, "The image cannot be read", ""}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img)
	return out.Bytes(), err
}
