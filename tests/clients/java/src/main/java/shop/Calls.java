package shop;

import com.netflix.conductor.client.exception.ConductorClientException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;

/** The calls that were made, each with what came of it: "works", the status of a refusal, or what went wrong. */
final class Calls {
    static final String WORKS = "works";
    private final Map<String, String> results = new TreeMap<>();

    interface Action {
        void run() throws Exception;
    }

    /** Make a call that returns something. Null if it failed: the result says why. */
    <T> T get(String method, Callable<T> call) {
        try {
            T found = call.call();
            note(method, WORKS);
            return found;
        } catch (Throwable failed) {
            note(method, why(failed));
            return null;
        }
    }

    /** Make a call that returns nothing. */
    void run(String method, Action call) {
        get(method, () -> {
            call.run();
            return null;
        });
    }

    /** Say that what the last calls of a method returned is not as it should be. */
    void check(String method, boolean isRight, Object seen) {
        if (!isRight) note(method, "wrong: " + seen);
    }

    /** All overloads of a method must work. */
    private void note(String method, String result) {
        results.merge(method, result, (before, now) -> WORKS.equals(before) ? now : before);
    }

    private static String why(Throwable failed) {
        Throwable cause = failed;
        while (cause != null && !(cause instanceof ConductorClientException)) cause = cause.getCause();
        if (cause instanceof ConductorClientException refused) return refused.getStatus() + ": " + refused.getMessage();
        return failed.toString();
    }

    /** Print everything as JSON, the methods of these clients that nothing has called among it. */
    void print(List<Class<?>> clients) {
        for (Class<?> client : clients)
            for (String name : methodsOf(client)) results.putIfAbsent(client.getSimpleName() + "." + name, "not called");
        List<String> lines = new ArrayList<>();
        results.forEach((method, result) -> lines.add(quoted(method) + ": " + quoted(result)));
        System.out.println("RESULTS {" + String.join(", ", lines) + "}");
    }

    private static Set<String> methodsOf(Class<?> client) {
        Set<String> names = new TreeSet<>();
        for (Method each : client.getMethods()) {
            boolean isOwn = each.getDeclaringClass() != Object.class && !Modifier.isStatic(each.getModifiers());
            if (isOwn && !each.isSynthetic() && !each.isAnnotationPresent(Deprecated.class)) names.add(each.getName());
        }
        return names;
    }

    private static String quoted(String text) {
        StringBuilder found = new StringBuilder("\"");
        for (char each : text.toCharArray())
            found.append(each == '"' || each == '\\' ? "\\" + each : each < ' ' ? " " : String.valueOf(each));
        return found.append('"').toString();
    }
}
