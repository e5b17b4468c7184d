// Package agent is the Go kit of agentd: what an agent needs to be a good unit, from the standard library alone.
//
// An agent hands its functions to Run, which says READY=1 once Init has returned, cancels Start's context when the
// manager asks it to stop, and exits with a code that tells the truth:
//
//	func main() {
//		agent.Run(agent.Agent{Start: func(ctx context.Context) error {
//			for agent.Wait(ctx, 5*time.Second) {
//				agent.Status("looking for work")
//			}
//			return nil
//		}})
//	}
//
// Without agentd (in a terminal, in a test) each call does nothing harmful. The environment's part of the contract is
// taken out of the environment as the program starts: the programs that an agent runs must not speak in its name.
package agent
