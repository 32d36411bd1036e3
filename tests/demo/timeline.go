package main

import (
	"bytes"
	"fmt"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The picture has a lane for each language (pale: it waits, solid: it holds) and below them one
// for the lock itself, where a gap is a hand-off.
const (
	pictureWidth  = 15 * vg.Inch
	pictureHeight = 4.2 * vg.Inch
	laneTop       = 0.36 // a lane reaches this far up and down from its middle
	lockLane      = 0
)

var (
	ink   = color.NRGBA{R: 0x2b, G: 0x2f, B: 0x36, A: 0xff}
	faint = color.NRGBA{R: 0xe3, G: 0xe6, B: 0xea, A: 0xff}
	// Okabe and Ito's colours, which differ for the colour-blind too.
	laneColor = [languageCount]color.NRGBA{
		python: {R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
		node:   {R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
		c:      {R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
		golang: {R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	}
)

func laneOf(l language) float64 { return float64(len(languages) - int(l)) }

// drawTimeline writes who held when as an SVG.
func drawTimeline(history []turn, path string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Who held the lock: %d turns of four programs", len(history))
	p.Title.TextStyle.Font = sans(17)
	p.Title.TextStyle.Color = ink
	p.Title.Padding = 14
	p.X.Label.Text = "seconds since the first wait  (solid: holds the lock, pale: waits for it)"
	p.X.Tick.Marker = plot.TickerFunc(seconds)
	p.Y.Tick.Marker = plot.TickerFunc(func(float64, float64) []plot.Tick { return laneTicks(history) })
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color = ink
		axis.Label.TextStyle.Font = sans(12)
		axis.Label.TextStyle.Color = ink
		axis.Label.Padding = 6
		axis.Tick.Label.Font = sans(12)
		axis.Tick.Label.Color = ink
		axis.Padding = 0
	}
	p.Y.LineStyle.Width = 0
	p.Y.Tick.LineStyle.Width = 0
	p.Y.Padding = 12 // room for a font wider than ours
	p.Y.Min, p.Y.Max = lockLane-0.6, laneOf(python)+0.6
	p.X.Min, p.X.Max = 0, 1
	if len(history) > 0 {
		p.Add(newLanes(history))
	}

	canvas := vgsvg.New(pictureWidth, pictureHeight)
	area := draw.New(canvas)
	p.Draw(draw.Crop(area, 16, -24, 12, -14))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	text := bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return os.WriteFile(path, text, 0o644)
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// seconds has a labelled tick every second, and a bare one every fifth of it.
func seconds(least, most float64) (ticks []plot.Tick) {
	every := 1
	for most/float64(every) > 15 {
		every *= 2
	}
	for i := 0; float64(i)/5 <= most; i++ {
		tick := plot.Tick{Value: float64(i) / 5}
		if i%(5*every) == 0 {
			tick.Label = fmt.Sprint(i / 5)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

func laneTicks(history []turn) []plot.Tick {
	turns := [languageCount]int{}
	for _, t := range history {
		turns[t.language]++
	}
	ticks := []plot.Tick{{Value: lockLane, Label: "the lock"}}
	for _, l := range languages {
		ticks = append(ticks, plot.Tick{Value: laneOf(l), Label: fmt.Sprintf("%v  (%d)", l, turns[l])})
	}
	return ticks
}

// lanes plots the turns.
type lanes struct {
	history []turn
	origin  int64
	end     float64
}

func newLanes(history []turn) *lanes {
	l := &lanes{history: history, origin: history[0].waiting}
	for _, t := range history {
		l.origin = min(l.origin, t.waiting)
	}
	for _, t := range history {
		l.end = max(l.end, l.at(t.released))
	}
	return l
}

// at is a moment in seconds since the origin.
func (l *lanes) at(moment int64) float64 { return span(l.origin, moment).Seconds() }

// DataRange is what the axes must show.
func (l *lanes) DataRange() (xmin, xmax, ymin, ymax float64) {
	return 0, l.end, lockLane - 0.6, laneOf(python) + 0.6
}

// Plot draws the lanes: their ground first, the waits upon it, the holds on top.
func (l *lanes) Plot(canvas draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&canvas)
	box := func(from, to, middle, half float64, fill color.Color) {
		canvas.FillPolygon(fill, []vg.Point{
			{X: toX(from), Y: toY(middle - half)}, {X: toX(to), Y: toY(middle - half)},
			{X: toX(to), Y: toY(middle + half)}, {X: toX(from), Y: toY(middle + half)},
		})
	}
	grid := draw.LineStyle{Color: faint, Width: 0.6}
	for _, tick := range seconds(0, l.end) {
		if tick.Label != "" {
			canvas.StrokeLine2(grid, toX(tick.Value), canvas.Min.Y, toX(tick.Value), canvas.Max.Y)
		}
	}
	for _, t := range l.history {
		box(l.at(t.waiting), l.at(t.acquired), laneOf(t.language), 0.10, pale(laneColor[t.language]))
	}
	for _, t := range l.history {
		from, to, fill := l.at(t.acquired), l.at(t.released), laneColor[t.language]
		box(from, to, laneOf(t.language), laneTop, fill)
		box(from, to, lockLane, laneTop, fill)
	}
}

// pale mixes a colour with white.
func pale(full color.NRGBA) color.NRGBA {
	mix := func(channel uint8) uint8 { return uint8((int(channel) + 2*0xff) / 3) }
	return color.NRGBA{R: mix(full.R), G: mix(full.G), B: mix(full.B), A: full.A}
}
