package trace

import (
	"strconv"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core"
)

// Walk replays every trace of core/testdata, each on a machine of its own, and compares what comes of it with what stands
// there. The arguments of run: nodes=1 who=host/1/go prefix= node_timeout= unavailable_after= (in ms).
func Walk(t *testing.T, newMachine func(*testing.T, core.Config) (Machine, *core.Error)) {
	datadriven.Walk(t, "../../core/testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			require.Equal(t, "run", d.Cmd, d.Pos)
			machine, wrong := newMachine(t, scanConfig(t, d))
			if wrong != nil {
				return wrong.Error() + "\n"
			}
			text, err := Replay(machine, d.Input)
			require.NoError(t, err, d.Pos)
			return text
		})
	})
}

func scanConfig(t *testing.T, d *datadriven.TestData) core.Config {
	config := core.Config{Who: "host/1/go"}
	nodes, nodeTimeout, unavailableAfter := 1, 0, 0
	d.MaybeScanArgs(t, "nodes", &nodes)
	d.MaybeScanArgs(t, "who", &config.Who)
	d.MaybeScanArgs(t, "prefix", &config.Prefix)
	d.MaybeScanArgs(t, "node_timeout", &nodeTimeout)
	d.MaybeScanArgs(t, "unavailable_after", &unavailableAfter)
	config.NodeTimeout = core.Duration(nodeTimeout) * core.Millisecond
	config.UnavailableAfter = core.Duration(unavailableAfter) * core.Millisecond
	for i := range nodes {
		config.Nodes = append(config.Nodes, "n"+strconv.Itoa(i)+":6379")
	}
	return config
}
