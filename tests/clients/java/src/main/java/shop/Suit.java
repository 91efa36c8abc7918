package shop;

import com.netflix.conductor.client.automator.TaskRunnerConfigurer;
import com.netflix.conductor.client.http.ConductorClient;
import com.netflix.conductor.client.http.MetadataClient;
import com.netflix.conductor.client.http.TaskClient;
import com.netflix.conductor.client.http.WorkflowClient;
import com.netflix.conductor.client.worker.Worker;
import com.netflix.conductor.common.metadata.tasks.Task;
import com.netflix.conductor.common.metadata.tasks.TaskDef;
import com.netflix.conductor.common.metadata.tasks.TaskResult;
import com.netflix.conductor.common.metadata.workflow.StartWorkflowRequest;
import com.netflix.conductor.common.metadata.workflow.WorkflowDef;
import com.netflix.conductor.common.metadata.workflow.WorkflowTask;
import com.netflix.conductor.common.run.Workflow;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Register a workflow of two steps, serve it with workers of the SDK, and see that it completes. Runs on Java 17. */
public final class Suit {
    private static final long LONGEST_MS = 20_000;

    public static void main(String[] args) throws Exception {
        ConductorClient client = ConductorClient.builder().basePath(System.getenv("CONDUCTOR_SERVER_URL")).build();
        Calls calls = new Calls();
        serve(client, calls);
        calls.print(List.of());
        System.exit(0);
    }

    static void serve(ConductorClient client, Calls calls) throws Exception {
        MetadataClient metadata = new MetadataClient(client);
        metadata.registerTaskDefs(List.of(task("measure"), task("stitch")));
        metadata.updateWorkflowDefs(List.of(suit()));
        Worker measure = Worker.create("measure", task -> done(task, "pieces", ((Number) task.getInputData().get("size")).intValue() * 2));
        Worker stitch = Worker.create("stitch", task -> done(task, "seams", 3));
        TaskRunnerConfigurer runner = new TaskRunnerConfigurer.Builder(new TaskClient(client), List.of(measure, stitch))
            .withThreadCount(2).build();
        calls.run("TaskRunnerConfigurer.init", runner::init);
        WorkflowClient workflows = new WorkflowClient(client);
        String id = workflows.startWorkflow(new StartWorkflowRequest().withName("suit").withVersion(1).withInput(Map.of("size", 2)));
        Workflow run = workflows.getWorkflow(id, true);
        for (long end = System.currentTimeMillis() + LONGEST_MS; !run.getStatus().isTerminal() && System.currentTimeMillis() < end;) {
            Thread.sleep(50);
            run = workflows.getWorkflow(id, true);
        }
        calls.check("TaskRunnerConfigurer.init", run.getStatus() == Workflow.WorkflowStatus.COMPLETED, run.getStatus());
        String pieces = String.valueOf(run.getTasks().get(0).getOutputData().get("pieces"));
        calls.check("TaskRunnerConfigurer.init", "4".equals(pieces), pieces);
        calls.check("TaskRunnerConfigurer.init", "3".equals(String.valueOf(run.getOutput().get("seams"))), run.getOutput());
        calls.run("TaskRunnerConfigurer.shutdown", runner::shutdown);
    }

    private static TaskDef task(String name) {
        TaskDef task = new TaskDef(name);
        task.setOwnerEmail("shop@example.com");
        task.setRetryCount(0);
        return task;
    }

    private static WorkflowDef suit() {
        WorkflowDef suit = new WorkflowDef();
        suit.setName("suit");
        suit.setVersion(1);
        suit.setOwnerEmail("shop@example.com");
        suit.setTimeoutSeconds(0);
        suit.setTimeoutPolicy(WorkflowDef.TimeoutPolicy.ALERT_ONLY);
        suit.setTasks(List.of(step("measure"), step("stitch")));
        return suit;
    }

    private static WorkflowTask step(String type) {
        WorkflowTask step = new WorkflowTask();
        step.setName(type);
        step.setTaskReferenceName(type);
        step.setInputParameters(new HashMap<>(Map.of("size", "${workflow.input.size}")));
        return step;
    }

    private static TaskResult done(Task task, String name, Object value) {
        TaskResult result = new TaskResult(task);
        result.setStatus(TaskResult.Status.COMPLETED);
        result.getOutputData().put(name, value);
        return result;
    }
}
