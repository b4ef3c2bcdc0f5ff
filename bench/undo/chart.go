package main

import (
	"fmt"
	"strings"
)

// chart draws a bar for each method: restored exactly, not restored and
// reported, falsely reported as undone.
func chart(all []result) string {
	const left, width, height = 90, 560, 26
	var b strings.Builder
	list := names(all)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img">`+"\n", left+width+70, 70+len(list)*(height+10))
	fmt.Fprintf(&b, `<title>Of %d side effects</title><rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n", sums(all, list[0]).runs)
	x := left
	for _, l := range [][2]string{{"#2a7f4f", "restored exactly"}, {"#b9bec6", "not restored, reported"}, {"#c23b32", "falsely reported as undone"}} {
		fmt.Fprintf(&b, `<rect x="%d" y="14" width="13" height="13" fill="%s"/><text x="%d" y="25" fill="#222222">%s</text>`+"\n", x, l[0], x+19, strings.ReplaceAll(l[1], `"`, "&quot;"))
		x += 175
	}
	for i, way := range list {
		s := sums(all, way)
		y, at := 44+i*(height+10), float64(left)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="#222222">%s</text>`+"\n", left-8, y+18, way)
		for _, part := range []struct {
			n          int
			fill, text string
		}{{s.exact, "#2a7f4f", "#ffffff"}, {s.reported, "#b9bec6", "#222222"}, {s.falsely, "#c23b32", "#ffffff"}} {
			if part.n == 0 {
				continue
			}
			long := float64(width) * float64(part.n) / float64(s.runs)
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, at, y, long, height, part.fill)
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="%s">%d</text>`+"\n", at+long/2, y+18, part.text, part.n)
			at += long
		}
	}
	return b.String() + "</svg>\n"
}
